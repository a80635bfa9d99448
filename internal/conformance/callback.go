package conformance

import (
	"errors"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var callbackChecks = []check{
	{
		name:    "CallbacksThatBlockOrPanic",
		promise: "what an OnRevoke callback does is its own affair: one that blocks, panics, releases or locks again delays no other callback, grant or call",
		needs:   []Capability{Losing},
		way:     callbacks,
	},
	{
		name:    "NoCallbackAfterARelease",
		promise: "OnRevoke is never called for a grant that was released first, also if its session is lost soon after",
		way:     noCallbackAfterARelease,
	},
}

func callbacks(e *env, w int) {
	c := e.Client()
	block := make(chan struct{})
	defer close(block)
	var g *recipes.Grant
	released, relocked := make(chan error, 1), make(chan error, 1)
	told := newRevocations()
	plain := e.on(c)
	l := e.on(c,
		recipes.OnRevoke(func(recipes.Revocation) { <-block }),
		recipes.OnRevoke(func(recipes.Revocation) { panic("a fault of the user's") }),
		recipes.OnRevoke(func(recipes.Revocation) { released <- g.Release(e.context()) }),
		recipes.OnRevoke(func(recipes.Revocation) {
			g, err := plain.Enter[w].Acquire(e.t.Context())
			if err == nil {
				err = g.Release(e.context())
			}
			relocked <- err
		}),
		told.option(),
	)
	others := newRevocations()
	g2 := e.get(e.named(c, lockY, others.option()), w)
	g = e.get(l, w)
	reason := c.Lose()
	e.await(told.some, "the callback after those that block and panic")
	e.await(others.some, "the callback of the other grant")
	e.ended(g, reason)
	e.ended(g2, reason)
	if err := receive(e, released, "Release in a callback"); !errors.Is(err, recipes.ErrRevoked) {
		e.t.Errorf("Release in a callback: %v", err)
	}
	if err := receive(e, relocked, "Lock in a callback"); err != nil {
		e.t.Errorf("Lock in a callback: %v", err)
	}
}

func receive[T any](e *env, c <-chan T, what string) (v T) {
	e.t.Helper()
	t := time.NewTimer(e.Patience())
	defer t.Stop()
	select {
	case v = <-c:
	case <-t.C:
		e.t.Fatalf("waited in vain for %s", what)
	}
	return v
}

func noCallbackAfterARelease(e *env, w int) {
	c, revs := e.Client(), newRevocations()
	l := e.on(c, revs.option(), recipes.MaxHold(e.Short()))
	for range 3 {
		g := e.get(l, w)
		e.release(g)
		if e.s.has(Losing) {
			c.Lose()
		}
		e.Pass(2 * e.Short())
		if err := g.Err(); !errors.Is(err, recipes.ErrReleased) || errors.Is(err, recipes.ErrRevoked) {
			e.t.Errorf("Err: %v", err)
		}
		e.release(g)
	}
	e.release(e.get(e.fresh(), w))
	if list := revs.all(); len(list) > 0 {
		e.t.Errorf("OnRevoke was told %+v", list)
	}
}
