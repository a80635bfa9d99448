package rwlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
)

// What is asked for under a context from what is held, in one call chain.
func TestAskedUnderWhatIsHeld(t *testing.T) {
	hold := func(e *env, ctx context.Context, lock acquire) (*recipes.Grant, context.Context) {
		g := e.StartContext(ctx, lock).Grant(time.Second)
		return g, g.Context(ctx)
	}
	for name, c := range map[string]struct {
		held      string // w, r: taken one under the other
		lock      func(l *rwlock.RWLock) acquire
		want      error // without recipes.Reentrant
		reentrant error // with it; nil: a nested grant
	}{
		"write under read":      {"r", func(l *rwlock.RWLock) acquire { return l.Lock }, recipes.ErrUpgrade, recipes.ErrUpgrade},
		"try write under read":  {"r", func(l *rwlock.RWLock) acquire { return l.TryLock }, recipes.ErrUpgrade, recipes.ErrUpgrade},
		"read under read":       {"r", func(l *rwlock.RWLock) acquire { return l.RLock }, recipes.ErrDeadlock, nil},
		"try read under read":   {"r", func(l *rwlock.RWLock) acquire { return l.TryRLock }, recipes.ErrDeadlock, nil},
		"write under write":     {"w", func(l *rwlock.RWLock) acquire { return l.Lock }, recipes.ErrDeadlock, nil},
		"try write under write": {"w", func(l *rwlock.RWLock) acquire { return l.TryLock }, recipes.ErrDeadlock, nil},
		"write under both":      {"wr", func(l *rwlock.RWLock) acquire { return l.Lock }, recipes.ErrDeadlock, nil},
		"read under both":       {"wr", func(l *rwlock.RWLock) acquire { return l.RLock }, recipes.ErrDeadlock, nil},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(e *env) {
				s := e.Open()
				l, re := e.rw(s), e.rw(e.Open(), recipes.Reentrant())
				waiting := (*locktest.Attempt)(nil)
				ctx := e.T.Context()
				var held []*recipes.Grant
				for _, kind := range c.held {
					lock := l.RLock
					if kind == 'w' {
						lock = l.Lock
					}
					var g *recipes.Grant
					g, ctx = hold(e, ctx, lock)
					held = append(held, g)
				}
				waiting = e.later(e.own().Lock, len(held)+1)
				e.ResetCounts()
				start := time.Now()
				e.StartContext(ctx, c.lock(l)).Fails(time.Second, c.want)
				var nested *recipes.Grant
				if c.reentrant != nil {
					e.StartContext(ctx, c.lock(re)).Fails(time.Second, c.reentrant)
				} else {
					nested = e.StartContext(ctx, c.lock(re)).Grant(time.Second)
					if nested.Token() != held[0].Token() {
						t.Errorf("token %v, want %v", nested.Token(), held[0].Token())
					}
				}
				if n := e.Requests().Total(); n > 0 || time.Since(start) > 0 {
					t.Errorf("%d requests, %v", n, time.Since(start))
				}
				for _, g := range held {
					e.Release(g)
				}
				if nested != nil {
					e.waits(waiting)
					if nested.Err() != nil {
						t.Error(nested.Err())
					}
					e.Release(nested)
				}
				e.Release(waiting.Grant(time.Second))
				// What has ended is no reason to refuse.
				e.Release(e.StartContext(context.WithoutCancel(ctx), c.lock(l)).Grant(time.Second))
				e.Empty()
			})
		})
	}
}

// Two that both want to write are told so, and none waits for the other.
func TestTwoUpgradeAtTheSameTime(t *testing.T) {
	run(t, func(e *env) {
		for _, l := range []*rwlock.RWLock{e.own(), e.own()} {
			g := e.read(l)
			defer e.Release(g)
			ctx := g.Context(e.T.Context())
			a, b := e.StartContext(ctx, l.Lock), e.StartContext(ctx, l.TryLock)
			defer a.Fails(time.Millisecond, recipes.ErrUpgrade)
			defer b.Fails(time.Millisecond, recipes.ErrUpgrade)
		}
		time.Sleep(time.Millisecond)
		e.Queued(2)
	})
}

// All takes either side, and refuses both of one lock.
func TestAllOfSeveral(t *testing.T) {
	run(t, func(e *env) {
		s := e.Open()
		m := e.MutexAt(s, "/locks/a")
		l := e.rw(s)
		r := e.read(e.own())
		g, err := recipes.All(e.T.Context(), l.Reader(), m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Lock(g.Context(e.T.Context())); !errors.Is(err, recipes.ErrUpgrade) {
			t.Error(err)
		}
		both := e.Start(func(ctx context.Context) (*recipes.Grant, error) { return recipes.All(ctx, l, m) })
		e.Release(r)
		e.waits(both)
		e.Release(g)
		e.Release(both.Grant(time.Second))
		if _, err := recipes.All(e.T.Context(), l, l.Reader()); !errors.Is(err, recipes.ErrDeadlock) {
			t.Error(err)
		}
		if l.Key() != e.own().Key() || l.Key() != l.Reader().Key() || l.Path() != locktest.Path {
			t.Errorf("key %q, path %q", l.Key(), l.Path())
		}
		e.Empty()
	})
}

// Another lock's grant in the context is no grant of this one.
func TestOtherPathsAreOtherLocks(t *testing.T) {
	run(t, func(e *env) {
		s := e.Open()
		other, err := rwlock.New(s, "/locks/y")
		if err != nil {
			t.Fatal(err)
		}
		l := e.rw(s)
		w := e.write(other)
		held := e.write(e.own())
		a := e.StartContext(w.Context(e.T.Context()), l.RLock)
		e.waits(a)
		e.Release(held)
		g := a.Grant(time.Second)
		e.Release(e.StartContext(g.Context(e.T.Context()), e.MutexAt(s, "/locks/a").Lock).Grant(time.Second))
		e.Release(g)
		e.Release(w)
	})
}
