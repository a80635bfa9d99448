package conformance

import (
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var delayChecks = []check{
	{
		name:    "LockDelayAfterADeath",
		promise: "after a holder with LockDelay died, the lock stays closed for that long, to those who wait and those who try",
		needs:   []Capability{Delay, Losing},
		way:     delayAfterADeath,
	},
	{
		name:    "LockDelayAfterMaxHold",
		promise: "a holder that was revoked counts as one that died",
		needs:   []Capability{Delay},
		way:     delayAfterMaxHold,
	},
	{
		name:    "NoLockDelayAfterARelease",
		promise: "after a release there is no delay, nor after a waiter gave up",
		needs:   []Capability{Delay},
		way:     noDelayAfterARelease,
	},
}

func delayAfterADeath(e *env, w int) {
	for _, waits := range []bool{true, false} {
		c := e.Client()
		s := e.hold(e.on(c, recipes.LockDelay(e.Short())), w)
		other := e.fresh()
		var next *attempt
		if waits {
			next = s.wait(other, 1)
		}
		e.witness.pardon(s.g)
		died := time.Now()
		c.Lose()
		e.await(s.g.Done(), "Done")
		if !waits {
			next = e.start(other, s.rival)
		}
		s.part()
		if e.s.has(Try) {
			e.startTry(e.fresh(), w).fails(recipes.ErrBusy)
		}
		g := next.grant()
		if open := time.Since(died); open < e.Short() {
			e.t.Errorf("open after %v", open)
		}
		e.release(g)
		e.empty()
	}
}

func delayAfterMaxHold(e *env, w int) {
	asked := time.Now()
	s := e.hold(e.fresh(recipes.LockDelay(e.Short()), recipes.MaxHold(e.Short())), w)
	e.await(s.g.Done(), "the end of MaxHold")
	e.queued(s.line - 1)
	next := e.start(e.fresh(), s.rival)
	s.part()
	g := next.grant()
	if open := time.Since(asked); open < 2*e.Short() { // held for one, closed for one
		e.t.Errorf("open after %v", open)
	}
	e.release(g)
}

func noDelayAfterARelease(e *env, w int) {
	l := e.fresh(recipes.LockDelay(24 * hour)) // longer than anybody's patience
	s := e.hold(l, w)
	next := s.wait(e.fresh(), 1)
	s.release()
	e.release(next.grant())
	s = e.hold(e.fresh(), w)
	a := s.wait(l, 1)
	a.cancel(errEnough)
	a.fails(errEnough)
	s.release()
	e.release(e.get(e.fresh(), w))
}
