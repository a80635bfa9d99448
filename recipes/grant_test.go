package recipes_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// case 34: a process that was stopped learns of the loss from the clock, when no
// timer has run yet.
func TestErrLooksAtTheClock(t *testing.T) {
	for name, ask := range map[string]func(g *recipes.Grant) error{
		"Err":     (*recipes.Grant).Err,
		"Release": func(g *recipes.Grant) error { return g.Release(t.Context()) },
		"Verify":  func(g *recipes.Grant) error { return g.Verify(t.Context()) },
		"Remaining": func(g *recipes.Grant) error {
			if r := g.Remaining(); r != 0 {
				t.Errorf("Remaining: %v", r)
			}
			return g.Err()
		},
		"Context": func(g *recipes.Grant) error { return context.Cause(g.Context(t.Context())) },
		"All": func(g *recipes.Grant) error {
			all, err := recipes.All(t.Context(), locked{"k", g})
			if err != nil {
				return err
			}
			return all.Err()
		},
	} {
		called := make(chan recipes.Revocation, 2)
		g, d, _ := grant(t, recipes.OnRevoke(func(r recipes.Revocation) { called <- r }))
		if err := g.Err(); err != nil {
			t.Fatal(err)
		}
		for _, left := range []time.Duration{0, -time.Second} {
			d.setRemaining(left)
			if err := ask(g); !errors.Is(err, recipes.ErrRevoked) || !errors.Is(err, recipes.ErrSessionLost) {
				t.Errorf("%s, %v left: %v", name, left, err)
			}
		}
		d.setRemaining(time.Hour) // never back to life
		if err := g.Err(); !errors.Is(err, recipes.ErrRevoked) || !isDone(g) {
			t.Errorf("%s: it came back: %v", name, err)
			continue
		}
		if r := <-called; r.Cause != g.Err() || r.Token != g.Token() || r.Path != path || len(called) > 0 {
			t.Errorf("%s: %+v, and %d more", name, r, len(called))
		}
		if c := d.causes(); len(c) != 1 || !errors.Is(c[0], recipes.ErrSessionLost) {
			t.Errorf("%s: given up with %v", name, c)
		}
	}
}

// locked is a lock that hands out a grant that is there already.
type locked struct {
	key string
	g   *recipes.Grant
}

func (l locked) Key() string                                      { return l.key }
func (l locked) Lock(ctx context.Context) (*recipes.Grant, error) { return l.g, nil }

func TestContextOfAGrant(t *testing.T) {
	type key struct{}
	parent, cancelParent := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
	g, _, revoke := grant(t)
	ctx, other := g.Context(parent), g.Context(t.Context())
	if ctx.Err() != nil || ctx.Value(key{}) != "value" {
		t.Error(ctx.Err(), ctx.Value(key{}))
	}
	enough := errors.New("enough")
	cancelParent(enough)
	if context.Cause(ctx) != enough || g.Err() != nil || other.Err() != nil {
		t.Errorf("after the parent's end: %v, %v, %v", context.Cause(ctx), g.Err(), other.Err())
	}
	revoke(recipes.ErrNodeDeleted, true)
	// Synchronously: when revoke has returned, no context of it is live.
	if other.Err() == nil || context.Cause(other) != g.Err() || !errors.Is(context.Cause(other), recipes.ErrNodeDeleted) {
		t.Errorf("%v, %v", context.Cause(other), g.Err())
	}
	if late := g.Context(t.Context()); context.Cause(late) != g.Err() {
		t.Errorf("made after the end: %v", context.Cause(late))
	}
	g, _, _ = grant(t)
	ctx = g.Context(t.Context())
	g.Release(t.Context())
	if !errors.Is(context.Cause(ctx), recipes.ErrReleased) {
		t.Errorf("released: %v", context.Cause(ctx))
	}
}

// Contexts cost no goroutine while they live, and leave nothing behind when they
// end before the grant.
func TestContextsCostNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _, _ := grant(t)
		before := runtime.NumGoroutine()
		ctxs := make([]context.Context, 1000)
		for i := range ctxs {
			ctxs[i] = g.Context(t.Context())
		}
		if n := runtime.NumGoroutine() - before; n > 10 {
			t.Errorf("%d goroutines", n)
		}
		for range 1000 {
			parent, cancel := context.WithCancel(t.Context())
			g.Context(parent)
			cancel()
		}
		synctest.Wait()
		g.Release(t.Context())
		for _, ctx := range ctxs {
			if ctx.Err() == nil {
				t.Fatal("a context outlives its grant")
			}
		}
	})
}

func TestReleaseIsConfirmedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, d, revoke := grant(t, recipes.OnRevoke(func(recipes.Revocation) { t.Error("called after a release") }))
		d.keepsDone = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Release(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, recipes.ErrRevoked) {
			t.Errorf("not confirmed: %v", err)
		}
		if !errors.Is(g.Err(), recipes.ErrReleased) || g.Remaining() != 0 {
			t.Errorf("%v, %v", g.Err(), g.Remaining())
		}
		if revoke(recipes.ErrSessionLost, true) {
			t.Error("revoked after its release")
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := g.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		d.done(nil)
		wg.Wait()
		if c := d.causes(); len(c) != 1 || c[0] != nil {
			t.Errorf("given up with %v", c)
		}
	})
}

func TestReleaseIsRefused(t *testing.T) {
	g, d, _ := grant(t)
	d.failure = recipes.ErrPermission
	for range 3 {
		var re *recipes.Error
		if err := g.Release(t.Context()); !errors.Is(err, recipes.ErrPermission) || !errors.As(err, &re) || re.Op != "release" {
			t.Error(err)
		}
	}
	if len(d.causes()) != 1 {
		t.Errorf("given up %d times", len(d.causes()))
	}
}

// case 48: a loss is said again at each release.
func TestReleaseAfterRevocation(t *testing.T) {
	for _, gone := range []bool{true, false} {
		g, d, revoke := grant(t)
		if !revoke(recipes.ErrNodeDeleted, gone) || revoke(recipes.ErrSessionLost, gone) {
			t.Error("revoke does not say whether it did it")
		}
		for range 3 {
			if err := g.Release(t.Context()); err != g.Err() || !errors.Is(err, recipes.ErrNodeDeleted) || errors.Is(err, recipes.ErrReleased) {
				t.Error(err)
			}
		}
		if c := d.causes(); gone && len(c) > 0 || !gone && (len(c) != 1 || c[0] == nil) {
			t.Errorf("gone %v: given up with %v", gone, c)
		}
	}
}

// Release and loss at the same time: one of them it is, and all agree.
func TestReleaseRacesRevocation(t *testing.T) {
	for range 500 {
		var called atomic.Int32
		var wg, callbacks sync.WaitGroup
		callbacks.Add(1)
		g, _, revoke := grant(t, recipes.OnRevoke(func(recipes.Revocation) { called.Add(1); callbacks.Done() }))
		ctx := g.Context(t.Context())
		var revoked bool
		errs := make([]error, 3)
		for i := range errs {
			wg.Go(func() { errs[i] = g.Release(t.Context()) })
		}
		wg.Go(func() { revoked = revoke(recipes.ErrSessionLost, true) })
		wg.Wait()
		if revoked {
			callbacks.Wait()
		}
		for _, err := range errs {
			if revoked != errors.Is(err, recipes.ErrRevoked) || revoked != (err != nil) {
				t.Fatalf("revoked %v, Release says %v", revoked, err)
			}
		}
		if revoked != (called.Load() == 1) || context.Cause(ctx) != g.Err() {
			t.Fatalf("revoked %v, %d callbacks", revoked, called.Load())
		}
	}
}

// Verify: an answer that did not come is no loss.
func TestVerifyWithoutAnAnswer(t *testing.T) {
	g, d, _ := grant(t)
	if err := g.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	d.verify = context.DeadlineExceeded
	if err := g.Verify(t.Context()); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, recipes.ErrRevoked) || g.Err() != nil {
		t.Errorf("%v, %v", err, g.Err())
	}
	g.Release(t.Context())
	if err := g.Verify(t.Context()); err != g.Err() {
		t.Error(err)
	}
}

// case 45
func TestCallbacksDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := make(chan string, 2)
		var g *recipes.Grant
		g, _, revoke := grant(t, recipes.Owner("me"),
			recipes.OnRevoke(func(recipes.Revocation) { time.Sleep(time.Minute) }),
			recipes.OnRevoke(func(recipes.Revocation) { panic("ouch") }),
			recipes.OnRevoke(func(r recipes.Revocation) {
				if !isDone(g) || g.Err() == nil {
					t.Error("called while the grant is live")
				}
				g.Release(t.Context())
				second <- r.Owner
			}))
		start := time.Now()
		revoke(recipes.ErrSessionLost, true)
		if owner := <-second; owner != "me" || time.Since(start) != 0 {
			t.Errorf("owner %q, after %v", owner, time.Since(start))
		}
		time.Sleep(time.Hour)
		if len(second) > 0 {
			t.Error("called twice")
		}
	})
}

func TestMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, d, _ := grant(t, recipes.MaxHold(time.Minute))
		early, _, _ := grant(t, recipes.MaxHold(time.Minute))
		early.Release(t.Context())
		start := time.Now()
		<-g.Done()
		if time.Since(start) != time.Minute || !errors.Is(g.Err(), recipes.ErrHeldTooLong) {
			t.Errorf("after %v: %v", time.Since(start), g.Err())
		}
		if c := d.causes(); len(c) != 1 || !errors.Is(c[0], recipes.ErrHeldTooLong) {
			t.Errorf("given up with %v", c)
		}
		time.Sleep(time.Hour)
		if !errors.Is(early.Err(), recipes.ErrReleased) {
			t.Error(early.Err())
		}
	})
}
