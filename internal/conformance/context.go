package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var contextChecks = []check{
	{
		name:    "ContextHasEndedOnEntry",
		promise: "under a context that has ended nothing is granted, also where the lock is free; the error matches its cause and says which lock",
		way:     endedOnEntry,
	},
	{
		name:    "ContextEndsWhileWaiting",
		promise: "a wait ends with its context, for its cause, and leaves nothing behind; those before and after it are not disturbed",
		way:     endsWhileWaiting,
	},
	{
		name:    "ContextEndsAsTheTurnComes",
		promise: "if the context has ended when the turn comes, the call fails",
		way:     endsAsTheTurnComes,
	},
	{
		name:    "ContextEndsAfterTheGrant", // case 46
		promise: "the context of the call bounds the wait, never the hold",
		way:     endsAfterTheGrant,
	},
	{
		name:    "ContextEndsWhileCutOff", // case 9
		promise: "a wait ends with its context also while the service can't be reached, and cleans up when it can be reached again",
		needs:   []Capability{CuttingOff},
		way:     endsWhileCutOff,
	},
}

var errEnough = errors.New("enough")

func endedOnEntry(e *env, w int) {
	l := e.fresh()
	ctx, cancel := context.WithCancelCause(e.t.Context())
	cancel(errEnough)
	fail := func() {
		for _, acquire := range []Acquire{l.Enter[w].Acquire, l.Enter[w].Try} {
			if acquire == nil {
				continue
			}
			for range 3 {
				a := e.startUnder(ctx, acquire, nil)
				a.fails(errEnough)
				var re *recipes.Error
				if !errors.As(a.err, &re) || re.Op == "" || re.Path == "" {
					e.t.Errorf("%v doesn't say what was tried on which lock", a.err)
				}
			}
		}
	}
	fail() // before the lock was ever used
	e.queued(0)
	e.release(e.get(l, w))
	e.empty()
	fail()
	e.queued(0)
	s := e.hold(l, w)
	fail()
	e.queued(s.line)
	s.release()
}

func endsWhileWaiting(e *env, w int) {
	l := e.fresh()
	s := e.hold(l, w)
	first := s.wait(l, 1)
	second := s.wait(e.fresh(), 2)
	third := s.wait(e.fresh(), 3)

	second.cancel(errEnough)
	second.fails(errEnough)
	e.queued(s.line + 2)
	if !first.pending() || !third.pending() || s.g.Err() != nil {
		e.t.Error("others were disturbed")
	}

	ctx, cancel := context.WithTimeout(e.t.Context(), e.Short())
	defer cancel()
	e.startUnder(ctx, l.Enter[s.rival].Acquire, e.seen(l, s.rival)).fails(context.DeadlineExceeded)
	e.queued(s.line + 2)

	s.release()
	e.letIn(first, third)
}

func endsAsTheTurnComes(e *env, w int) {
	l, c := e.fresh(), e.Client()
	other := e.on(c)
	ended, cancel := context.WithCancel(e.t.Context())
	cancel()
	for range 5 {
		// Both may be ready when the waiter looks: it must not leave the choice to
		// chance.
		s := e.hold(l, w)
		a := s.wait(other, 1)
		a.cancel(errEnough)
		s.g.Release(ended)
		s.part()
		a.fails(errEnough)
		e.empty()
		if !e.s.has(Steps) {
			continue
		}
		// What it asks for when its turn has come is answered too late.
		s = e.hold(l, w)
		a = s.wait(other, 1)
		c.OnStep(func() { a.cancel(errEnough) })
		s.release()
		_, err := a.result()
		c.OnStep(nil)
		if err != nil {
			a.fails(errEnough)
		} else if a.ctx.Err() != nil { // otherwise it asked for nothing
			e.t.Error("granted after the end of its context")
		} else {
			e.release(a.g)
		}
		e.empty()
	}
	e.release(e.get(other, w))
}

func endsAfterTheGrant(e *env, w int) {
	l := e.fresh()
	s := e.hold(l, w)
	next := s.wait(e.fresh(), 1)
	a := e.start(l, s.rival)
	e.queued(s.line + 2)
	s.release()
	if !e.s.has(Order) {
		next, a = e.sooner(next, a)
	}
	g := next.grant()
	next.cancel(errEnough)
	e.Pass(2 * time.Minute)
	if err := g.Verify(e.context()); err != nil {
		e.t.Errorf("the grant ended with the context of the call: %v", err)
	}
	e.release(g)
	g = a.grant() // under the context of the test
	a.cancel(errEnough)
	e.release(g)
}

func endsWhileCutOff(e *env, w int) {
	s := e.hold(e.fresh(), w)
	c := e.Client()
	a := s.wait(e.on(c), 1)
	c.CutOff()
	a.cancel(errEnough)
	a.fails(errEnough)
	late := e.start(e.on(c), s.rival)
	if !late.pending() {
		e.t.Error("came to an end without the service")
	}
	late.cancel(errEnough)
	late.fails(errEnough)
	e.Heal()
	e.queued(s.line)
	s.release()
	e.release(e.get(e.on(c), w))
}
