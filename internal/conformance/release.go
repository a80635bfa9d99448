package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var releaseChecks = []check{
	{
		name:    "Released",
		promise: "Release ends the grant and lets the next in; it is idempotent, also when called from many goroutines at a time",
		way:     released,
	},
	{
		name:    "ReleasedUnderAnEndedContext", // case 47
		promise: "Release is carried out even if its context is over, which bounds only the wait for the confirmation",
		way:     releasedUnderAnEndedContext,
	},
	{
		name:    "ReleasedLate",
		promise: "the release of an old grant never touches a newer one, however often and late it comes",
		way:     releasedLate,
	},
	{
		name:    "ReleasedWhileCutOff",
		promise: "a release while the service can't be reached is carried out when it can be again, or made good by the end of the session; it is no revocation",
		needs:   []Capability{CuttingOff},
		way:     releasedWhileCutOff,
	},
}

func released(e *env, w int) {
	l := e.fresh()
	s := e.hold(l, w)
	ctx := s.g.Context(e.t.Context())
	if s.g.Err() != nil || isDone(s.g.Done()) || ctx.Err() != nil {
		e.t.Errorf("a live grant: %v, %v", s.g.Err(), ctx.Err())
	}
	next := s.wait(e.fresh(), 1)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { e.release(s.g) })
	}
	e.bounded("releases", wg.Wait)
	e.release(s.g, s.g)
	s.part()
	if !isDone(s.g.Done()) || !errors.Is(s.g.Err(), recipes.ErrReleased) || errors.Is(s.g.Err(), recipes.ErrRevoked) {
		e.t.Errorf("Err: %v", s.g.Err())
	}
	if context.Cause(ctx) != s.g.Err() || s.g.Remaining() != 0 {
		e.t.Errorf("the context's cause: %v; remaining: %v", context.Cause(ctx), s.g.Remaining())
	}
	if err := s.g.Verify(e.context()); !errors.Is(err, recipes.ErrReleased) {
		e.t.Errorf("Verify: %v", err)
	}
	e.release(next.grant())
	for range 3 {
		e.release(e.get(l, w))
	}
	e.empty()
}

func releasedUnderAnEndedContext(e *env, w int) {
	l := e.fresh()
	s := e.hold(l, w)
	next := s.wait(e.fresh(), 1)
	ctx, cancel := context.WithCancelCause(e.t.Context())
	cancel(errEnough)
	// It may be confirmed before it is waited for.
	if err := s.g.Release(ctx); err != nil && !errors.Is(err, errEnough) {
		e.t.Errorf("release: %v", err)
	}
	if !errors.Is(s.g.Err(), recipes.ErrReleased) {
		e.t.Errorf("Err: %v", s.g.Err())
	}
	s.part()
	e.release(next.grant())
	e.release(s.g)
	e.release(e.get(l, w))
}

func releasedLate(e *env, w int) {
	l := e.fresh()
	var old []*recipes.Grant
	for range 3 {
		g := e.get(l, w)
		e.release(g)
		old = append(old, g)
	}
	if e.s.has(Removing) {
		g := e.get(l, w)
		e.queued(1)
		e.witness.pardon(g)
		e.Remove(lockX, 0)
		e.await(g.Done(), "Done")
		old = append(old, g)
	}
	// A newer one of the same client, and one of another's behind it.
	s := e.hold(l, w)
	next := s.wait(e.fresh(), 1)
	for range 2 {
		for _, g := range old {
			if err := g.Release(e.context()); (err != nil) != errors.Is(g.Err(), recipes.ErrRevoked) {
				e.t.Errorf("a late release: %v", err)
			}
		}
		e.Pass(time.Minute)
		e.Settle()
		if err := s.g.Verify(e.context()); err != nil || !next.pending() {
			e.t.Errorf("after a late release: the newer grant: %v; the one behind waits: %v", err, next.pending())
		}
	}
	e.queued(s.line + 1)
	s.release()
	e.release(next.grant())
}

func releasedWhileCutOff(e *env, w int) {
	c, revs := e.Client(), newRevocations()
	l := e.on(c, revs.option())
	s := e.hold(l, w)
	next := s.wait(e.fresh(), 1)
	c.CutOff()
	ctx, cancel := context.WithCancelCause(e.t.Context())
	cancel(errEnough)
	if err := s.g.Release(ctx); !errors.Is(err, errEnough) || errors.Is(err, recipes.ErrRevoked) {
		e.t.Errorf("release: %v", err)
	}
	if !errors.Is(s.g.Err(), recipes.ErrReleased) {
		e.t.Errorf("Err: %v", s.g.Err())
	}
	e.release(next.grant()) // at the latest when the service gives the session up
	s.part()
	e.Heal()
	e.release(s.g)
	e.release(e.get(l, w))
	if list := revs.all(); len(list) > 0 {
		e.t.Errorf("OnRevoke was told %+v", list)
	}
}
