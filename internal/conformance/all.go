package conformance

import (
	"context"
	"errors"
	"sync"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var allChecks = []check{
	{
		name:    "All",
		promise: "All takes several locks or none, in one order whatever order they are given in, and gives them up together",
		needs:   []Capability{All},
		way:     all,
	},
	{
		name:    "AllLosesOne",
		promise: "the grant of several locks is revoked when the first of its parts is",
		needs:   []Capability{All, Losing},
		way:     allLosesOne,
	},
}

// lockable makes a way in something that recipes.All takes.
type lockable struct {
	l Lock
	w int
}

func (l lockable) Key() string { return l.l.Key() }
func (l lockable) Lock(ctx context.Context) (*recipes.Grant, error) {
	return l.l.Enter[l.w].Acquire(ctx)
}

func all(e *env, w int) {
	c := e.Client()
	lx, ly := e.on(c), e.named(c, lockY)
	if lx.Key() == ly.Key() || lx.Key() != e.fresh().Key() {
		e.t.Fatalf("keys %q and %q; the first by another client: %q", lx.Key(), ly.Key(), e.fresh().Key())
	}
	x, y := lockable{lx, w}, lockable{ly, w}
	g, err := recipes.All(e.context(), y, x)
	if err != nil {
		e.t.Fatal(err)
	}
	if parts := g.Parts(); len(parts) != 2 || parts[0].Err() != nil || parts[1].Err() != nil {
		e.t.Errorf("parts %v", parts)
	}
	e.queued(1)
	e.release(g, g)
	e.empty()

	if _, err := recipes.All(e.context(), x, y, lockable{e.on(c), w}); !errors.Is(err, recipes.ErrDeadlock) {
		e.t.Errorf("the same lock twice: %v", err)
	}

	// One can't be had: none is kept.
	s := e.hold(e.fresh(), w)
	ctx, cancel := context.WithTimeout(e.context(), e.Short())
	defer cancel()
	rivals := []recipes.Lockable{lockable{lx, s.rival}, lockable{ly, s.rival}}
	if g, err := recipes.All(ctx, rivals...); g != nil || !errors.Is(err, context.DeadlineExceeded) {
		e.t.Errorf("%v, %v", g, err)
	}
	if left, ok := e.Empty(lockY); !ok {
		e.t.Errorf("left of %s: %s", lockY, left)
	}
	s.release()

	var wg sync.WaitGroup
	for i := range 4 {
		c := e.Client()
		pair := []recipes.Lockable{lockable{e.on(c), s.rival}, lockable{e.named(c, lockY), s.rival}}
		if i%2 == 0 {
			pair[0], pair[1] = pair[1], pair[0]
		}
		wg.Go(func() {
			for range 5 {
				g, err := recipes.All(e.context(), pair...)
				if err != nil {
					e.t.Error(err)
					return
				}
				e.release(g)
			}
		})
	}
	e.bounded("those who take both locks", wg.Wait)
}

func allLosesOne(e *env, w int) {
	a, b := e.Client(), e.Client()
	// Keys don't tell which client: the two locks are of different ones.
	g, err := recipes.All(e.context(), lockable{e.on(a), w}, lockable{e.named(b, lockY), w})
	if err != nil {
		e.t.Fatal(err)
	}
	ctx := g.Context(e.t.Context())
	reason := a.Lose()
	e.await(g.Done(), "Done")
	e.await(ctx.Done(), "the grant's context")
	if !errors.Is(g.Err(), recipes.ErrRevoked) || !errors.Is(g.Err(), reason) || context.Cause(ctx) != g.Err() {
		e.t.Errorf("Err: %v; the context's cause: %v", g.Err(), context.Cause(ctx))
	}
	if err := g.Release(e.context()); !errors.Is(err, recipes.ErrRevoked) {
		e.t.Errorf("release: %v", err)
	}
	for _, lock := range []string{lockX, lockY} {
		if left, ok := e.Empty(lock); !ok {
			e.t.Errorf("left of %s: %s", lock, left)
		}
	}
}
