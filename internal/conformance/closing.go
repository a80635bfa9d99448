package conformance

import (
	"errors"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var closeChecks = []check{
	{
		name:    "ClosedWhileHolding",
		promise: "closing a client revokes what it holds, with ErrSessionClosed and OnRevoke, and frees it for the next without waiting for a session to expire; what is asked of it afterwards fails with ErrSessionClosed",
		way:     closedWhileHolding,
	},
	{
		name:    "ClosedWhileWaiting",
		promise: "closing a client ends its waits with ErrSessionClosed and leaves nothing behind",
		way:     closedWhileWaiting,
	},
}

func closedWhileHolding(e *env, w int) {
	c, revs := e.Client(), newRevocations()
	// An hour that nobody has to wait: an orderly end is no death.
	opts := []recipes.Option{revs.option()}
	if e.s.has(Delay) {
		opts = append(opts, recipes.LockDelay(hour))
	}
	l := e.on(c, opts...)
	s := e.hold(l, w)
	ctx := s.g.Context(e.t.Context())
	next := s.wait(e.fresh(), 1)
	e.bounded("Close", func() {
		if err := c.Close(); err != nil {
			e.t.Errorf("close: %v", err)
		}
	})
	if !isDone(s.g.Done()) {
		e.t.Error("not revoked when Close returns")
	}
	e.ended(s.g, recipes.ErrSessionClosed)
	e.await(ctx.Done(), "the grant's context")
	e.await(revs.some, "OnRevoke")
	e.release(next.grant())
	s.part()
	for _, acquire := range []Acquire{l.Enter[w].Acquire, l.Enter[w].Try} {
		if acquire != nil {
			e.startUnder(e.t.Context(), acquire, nil).fails(recipes.ErrSessionClosed)
		}
	}
	if l.Contenders != nil {
		if _, err := l.Contenders(e.context()); !errors.Is(err, recipes.ErrSessionClosed) {
			e.t.Errorf("contenders: %v", err)
		}
	}
	e.empty()
	if n := len(revs.all()); n != 1 {
		e.t.Errorf("OnRevoke was called %d times", n)
	}
}

func closedWhileWaiting(e *env, w int) {
	s := e.hold(e.fresh(), w)
	c := e.Client()
	waiting := []*attempt{s.wait(e.on(c), 1), s.wait(e.on(c, recipes.FailOnLoss()), 2)}
	behind := s.wait(e.fresh(), 3)
	e.bounded("Close", func() { c.Close() })
	for _, a := range waiting {
		a.fails(recipes.ErrSessionClosed)
	}
	e.queued(s.line + 1)
	if !behind.pending() || s.g.Err() != nil {
		e.t.Error("others were disturbed")
	}
	s.release()
	e.release(behind.grant())
}
