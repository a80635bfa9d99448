package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

const hour = time.Hour

var holdChecks = []check{
	{
		name:    "MaxHold",
		promise: "a grant that was held for its MaxHold is revoked with ErrHeldTooLong, and the next in line is let in",
		way:     maxHold,
	},
	{
		name:    "Verify",
		promise: "Verify asks the service: nil for what is held",
		way:     verify,
	},
	{
		name:    "VerifyFindsALoss",
		promise: "what Verify finds lost is revoked before it returns",
		needs:   []Capability{Removing},
		way:     verifyFindsALoss,
	},
	{
		name:    "VerifyWhileCutOff",
		promise: "where Verify gets no answer, it fails with the end of its context, and the grant lives on",
		needs:   []Capability{CuttingOff},
		way:     verifyWhileCutOff,
	},
	{
		name:    "Remaining",
		promise: "Remaining is never negative, goes on being more than nothing as long as the service answers, and bounds what is left when it doesn't",
		way:     remaining,
	},
}

func maxHold(e *env, w int) {
	revs := newRevocations()
	l := e.fresh(recipes.MaxHold(e.Short()), revs.option())
	asked := time.Now()
	s := e.hold(l, w)
	next := e.start(e.fresh(), s.rival)
	e.await(s.g.Done(), "the end of MaxHold")
	if held := time.Since(asked); held < e.Short() {
		e.t.Errorf("revoked after %v", held)
	}
	e.ended(s.g, recipes.ErrHeldTooLong)
	s.part()
	e.release(next.grant())
	e.await(revs.some, "OnRevoke")
	e.release(e.get(l, w)) // in time
	e.Pass(time.Minute)
	if list := revs.all(); len(list) != 1 || !errors.Is(list[0].Cause, recipes.ErrHeldTooLong) {
		e.t.Errorf("OnRevoke was told %+v", list)
	}
}

func verify(e *env, w int) {
	g := e.get(e.fresh(), w)
	for range 5 {
		if err := g.Verify(e.context()); err != nil {
			e.t.Error(err)
		}
		e.Pass(time.Minute)
	}
	e.release(g)
	if err := g.Verify(e.context()); !errors.Is(err, recipes.ErrReleased) {
		e.t.Errorf("released: %v", err)
	}
}

func verifyFindsALoss(e *env, w int) {
	g := e.get(e.fresh(), w)
	e.queued(1)
	e.witness.pardon(g)
	e.Remove(lockX, 0)
	if err := g.Verify(e.context()); !errors.Is(err, recipes.ErrRevoked) || !errors.Is(err, recipes.ErrNodeDeleted) {
		e.t.Errorf("Verify: %v", err)
	}
	if !isDone(g.Done()) {
		e.t.Error("not revoked")
	}
	e.ended(g, recipes.ErrNodeDeleted)
}

func verifyWhileCutOff(e *env, w int) {
	c := e.Client()
	g := e.get(e.on(c), w)
	c.CutOff()
	ctx, cancel := context.WithCancelCause(e.t.Context())
	answer := make(chan error, 1)
	go func() { answer <- g.Verify(ctx) }()
	e.Settle()
	cancel(errEnough)
	err := receive(e, answer, "the end of Verify")
	if !errors.Is(err, errEnough) || g.Err() != nil {
		e.t.Errorf("Verify: %v; Err: %v", err, g.Err())
	}
	e.Heal()
	e.release(g)
}

func remaining(e *env, w int) {
	c := e.Client()
	g := e.get(e.on(c), w)
	for range 50 {
		if r := g.Remaining(); r <= 0 {
			e.t.Fatalf("%v remain, and the grant says %v", r, g.Err())
		}
		e.Pass(700 * time.Millisecond)
	}
	if !e.s.has(CuttingOff) {
		e.release(g)
		if r := g.Remaining(); r != 0 {
			e.t.Errorf("%v remain", r)
		}
		return
	}
	c.CutOff()
	said, at := g.Remaining(), time.Now()
	for !isDone(g.Done()) {
		if g.Remaining() < 0 {
			e.t.Fatalf("%v remain", g.Remaining())
		}
		e.Pass(100 * time.Millisecond)
		if time.Since(at) > e.Patience() {
			e.t.Fatalf("said %v remained, and goes on", said)
		}
	}
	if g.Remaining() != 0 {
		e.t.Errorf("%v remain after the end", g.Remaining())
	}
	e.ended(g, recipes.ErrSessionLost)
}
