package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// The locks that checks use: mostly the first.
const (
	lockX = "x"
	lockY = "y"
)

// An env is what one check works with.
type env struct {
	World
	t       *testing.T
	s       Suite
	witness witness // of lockX
}

// on returns the lock of a client.
func (e *env) on(c Client, opts ...recipes.Option) Lock {
	e.t.Helper()
	return e.named(c, lockX, opts...)
}

func (e *env) named(c Client, name string, opts ...recipes.Option) Lock {
	e.t.Helper()
	l, err := c.Lock(name, opts...)
	if err != nil {
		e.t.Fatal(err)
	}
	if len(l.Enter) != len(e.s.Ways) {
		e.t.Fatalf("%d entries for %d ways", len(l.Enter), len(e.s.Ways))
	}
	for i, entry := range l.Enter {
		if entry.Acquire == nil || (entry.Try == nil) == e.s.has(Try) {
			e.t.Fatalf("way %s: the entry is incomplete, or lacks what it has", e.s.Ways[i].Name)
		}
	}
	if (l.Contenders == nil) == e.s.has(Contenders) || (l.Key == nil) == e.s.has(All) {
		e.t.Fatal("the lock is incomplete, or lacks what it has")
	}
	l.name = name
	return l
}

// fresh returns the lock of a client of its own.
func (e *env) fresh(opts ...recipes.Option) Lock {
	e.t.Helper()
	return e.on(e.Client(), opts...)
}

// queued fails the test unless n come to stand in line.
func (e *env) queued(n int) {
	e.t.Helper()
	if is, ok := e.Queued(lockX, n); !ok {
		e.t.Fatalf("in line: %s; want %d", is, n)
	}
}

func (e *env) empty() {
	e.t.Helper()
	if left, ok := e.Empty(lockX); !ok {
		e.t.Fatalf("left behind: %s", left)
	}
}

// An attempt is a call of Lock or one of its kin under way.
type attempt struct {
	e      *env
	ctx    context.Context
	done   chan struct{}
	cancel context.CancelCauseFunc
	g      *recipes.Grant
	err    error
}

// start comes in by way w on a goroutine of its own.
func (e *env) start(l Lock, w int) *attempt {
	return e.startUnder(e.t.Context(), l.Enter[w].Acquire, e.seen(l, w))
}

func (e *env) startTry(l Lock, w int) *attempt {
	return e.startUnder(e.t.Context(), l.Enter[w].Try, e.seen(l, w))
}

// seen shows a grant to the witness.
func (e *env) seen(l Lock, w int) func(*recipes.Grant) {
	return func(g *recipes.Grant) {
		if l.name == lockX {
			e.witness.saw(e, w, g)
		}
	}
}

// startUnder calls acquire on a goroutine of its own, under a context made from
// ctx, and hands what it gets to seen, which may be nil.
func (e *env) startUnder(ctx context.Context, acquire Acquire, seen func(*recipes.Grant)) *attempt {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attempt{e: e, ctx: ctx, done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(a.done)
		a.g, a.err = acquire(ctx)
		if (a.g == nil) == (a.err == nil) {
			e.t.Errorf("grant %v together with error %v", a.g, a.err)
			if a.err == nil {
				a.err = errors.New("neither a grant nor an error")
			}
		} else if a.err == nil && seen != nil {
			seen(a.g)
		}
	}()
	return a
}

// pending reports whether the attempt goes on, once all has settled.
func (a *attempt) pending() bool {
	a.e.Settle()
	return !isDone(a.done)
}

// result waits for the end.
func (a *attempt) result() (*recipes.Grant, error) {
	a.e.t.Helper()
	a.e.await(a.done, "the end of an attempt")
	return a.g, a.err
}

// grant waits for the grant.
func (a *attempt) grant() *recipes.Grant {
	a.e.t.Helper()
	if _, err := a.result(); err != nil {
		a.e.t.Fatalf("not granted: %v", err)
	}
	return a.g
}

// fails waits for the end, which must be a failure for that reason.
func (a *attempt) fails(reason error) {
	a.e.t.Helper()
	g, err := a.result()
	if g != nil {
		a.e.t.Fatalf("granted, want %v", reason)
	}
	if !errors.Is(err, reason) {
		a.e.t.Errorf("error %v, want %v", err, reason)
	}
}

// get comes in and waits for the grant.
func (e *env) get(l Lock, w int) *recipes.Grant {
	e.t.Helper()
	return e.start(l, w).grant()
}

// context is for calls that a test waits for: a lock that never answers must fail
// it, not hang it.
func (e *env) context() context.Context {
	ctx, cancel := context.WithTimeout(e.t.Context(), e.Patience())
	e.t.Cleanup(cancel)
	return ctx
}

// release gives grants up, which must be confirmed.
func (e *env) release(grants ...*recipes.Grant) {
	e.t.Helper()
	for _, g := range grants {
		if err := g.Release(e.context()); err != nil {
			e.t.Errorf("release: %v", err)
		}
	}
}

// await waits for c, but not for ever. It must not be called from goroutines
// that a test started.
func (e *env) await(c <-chan struct{}, what string) {
	e.t.Helper()
	t := time.NewTimer(e.Patience())
	defer t.Stop()
	select {
	case <-c:
	case <-t.C:
		is, _ := e.Empty(lockX)
		e.t.Fatalf("waited in vain for %s; in line: %s", what, is)
	}
}

// bounded runs f on a goroutine and waits for its end, but not for ever.
func (e *env) bounded(what string, f func()) {
	e.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	e.await(done, what)
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
