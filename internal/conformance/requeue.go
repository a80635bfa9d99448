package conformance

import (
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var requeueChecks = []check{
	{
		name:    "LostWhileWaiting",
		promise: "a waiter whose session ends queues again, at the tail, and is served in the end",
		needs:   []Capability{Losing, Requeueing},
		way: func(e *env, w int) {
			e.requeued(w, func(c Client, s *scene) { c.Lose() })
		},
	},
	{
		name:    "CutOffWhileWaiting",
		promise: "a waiter that was cut off until its session ended queues again, at the tail, and is served in the end",
		needs:   []Capability{CuttingOff, Requeueing},
		way: func(e *env, w int) {
			e.requeued(w, func(c Client, s *scene) {
				c.CutOff()
				e.queued(s.line + 1) // the service has given it up
				e.Heal()
			})
		},
	},
	{
		name:    "RemovedWhileWaiting",
		promise: "a waiter whose place an operator removes is served in the end, and never takes another's place for its own",
		needs:   []Capability{Removing, Requeueing},
		way:     removedWhileWaiting,
	},
	{
		name:    "FailOnLoss",
		promise: "with FailOnLoss a waiter fails when its session ends, for the reason of that, and leaves nothing behind",
		needs:   []Capability{Losing, Requeueing},
		way: func(e *env, w int) {
			e.failsOnLoss(w, func(c Client) error { return c.Lose() })
		},
	},
	{
		name:    "FailOnLossWhileCutOff",
		promise: "with FailOnLoss a waiter that is cut off fails by its own clock, without hearing from the service",
		needs:   []Capability{CuttingOff, Requeueing},
		way: func(e *env, w int) {
			e.failsOnLoss(w, func(c Client) error {
				c.CutOff()
				return recipes.ErrSessionLost
			})
		},
	},
}

func (e *env) requeued(w int, fault func(Client, *scene)) {
	s := e.hold(e.fresh(), w)
	c := e.Client()
	a := s.wait(e.on(c), 1)
	behind := s.wait(e.fresh(), 2)
	fault(c, s)
	e.queued(s.line + 2)
	e.Pass(time.Minute)
	if !a.pending() || !behind.pending() || s.g.Err() != nil {
		e.t.Fatalf("the loss of a waiter: it waits: %v, so does the one behind: %v, held: %v", a.pending(), behind.pending(), s.g.Err())
	}
	s.release()
	if e.s.has(Order) {
		e.release(behind.grant()) // the tail is behind it
		e.release(a.grant())
		return
	}
	e.letIn(a, behind)
}

// letIn takes what comes, in whatever order.
func (e *env) letIn(a, b *attempt) {
	e.t.Helper()
	a, b = e.sooner(a, b)
	e.release(a.grant())
	e.release(b.grant())
}

// sooner waits for the first to come in, and returns it first.
func (e *env) sooner(a, b *attempt) (first, second *attempt) {
	e.t.Helper()
	select {
	case <-a.done:
	case <-b.done:
		return b, a
	case <-time.After(e.Patience()):
		e.t.Fatal("nobody comes next")
	}
	return a, b
}

func removedWhileWaiting(e *env, w int) {
	s := e.hold(e.fresh(), w)
	a := s.wait(e.fresh(), 1)
	behind := s.wait(e.fresh(), 2)
	e.Remove(lockX, s.line)
	e.Settle()
	if isDone(behind.done) || isDone(a.done) || s.g.Err() != nil {
		e.t.Fatal("somebody came in, or gave up")
	}
	s.release()
	e.letIn(a, behind)
}

func (e *env) failsOnLoss(w int, fault func(Client) error) {
	s := e.hold(e.fresh(), w)
	c := e.Client()
	l := e.on(c, recipes.FailOnLoss())
	a := s.wait(l, 1)
	behind := s.wait(e.fresh(), 2)
	a.fails(fault(c))
	e.queued(s.line + 1)
	if !behind.pending() || s.g.Err() != nil {
		e.t.Error("others were disturbed")
	}
	e.Heal()
	s.release()
	e.release(behind.grant())
	e.release(e.get(l, w)) // the lock object goes on
}
