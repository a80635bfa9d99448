package conformance

import "github.com/lockkeeper/lockkeeper/recipes"

var tryChecks = []check{
	{
		name:    "TryOnABusyLock",
		promise: "where somebody is in the way, Try fails with ErrBusy and leaves nothing behind, whoever waits",
		needs:   []Capability{Try},
		way:     tryBusy,
	},
	{
		name:    "TryOnAFreeLock",
		promise: "where nobody is in the way, Try returns a grant like any other",
		needs:   []Capability{Try},
		way:     tryFree,
	},
	{
		name:    "TryBehindAWaiter",
		promise: "Try does not pass those who wait, even where it fits beside those who hold",
		needs:   []Capability{Try, Order},
		lock:    tryBehindAWaiter,
	},
}

func tryBusy(e *env, w int) {
	l := e.fresh()
	s := e.hold(l, w)
	for _, other := range []Lock{l, e.fresh()} {
		for range 3 {
			e.startTry(other, s.rival).fails(recipes.ErrBusy)
		}
	}
	e.queued(s.line)
	waiter := s.wait(e.fresh(), 1)
	e.startTry(l, s.rival).fails(recipes.ErrBusy)
	e.queued(s.line + 1)
	s.release()
	e.release(waiter.grant())
}

func tryFree(e *env, w int) {
	l := e.fresh()
	for range 3 {
		g := e.startTry(l, w).grant()
		e.queued(1)
		if err := g.Verify(e.context()); err != nil {
			e.t.Error(err)
		}
		e.release(g)
		e.empty()
	}
	s := e.hold(e.fresh(), w)
	waiter := s.wait(e.fresh(), 1)
	s.release()
	e.release(waiter.grant())
	e.release(e.startTry(l, w).grant())
}

// tryBehindAWaiter needs one way that fits beside the holder's, and one that
// doesn't. Where all ways exclude each other, tryBusy has seen it all.
func tryBehindAWaiter(e *env) {
	for h, holder := range e.s.Ways {
		for w, waiter := range e.s.Ways {
			for p, passer := range e.s.Ways {
				if holder.Takes+waiter.Takes <= e.s.Size || holder.Takes+passer.Takes > e.s.Size {
					continue
				}
				l := e.fresh()
				g := e.get(l, h)
				e.queued(1)
				a := e.start(l, w)
				e.queued(2)
				e.startTry(e.fresh(), p).fails(recipes.ErrBusy)
				if !a.pending() {
					e.t.Errorf("%s doesn't wait for %s", waiter.Name, holder.Name)
				}
				e.release(g)
				e.release(a.grant())
				e.empty()
			}
		}
	}
}
