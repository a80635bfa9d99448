package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var stepChecks = []check{
	{
		name:    "ContextEndsAtEachStep",
		promise: "at whichever request of acquiring the context ends: either it is granted, or nothing is left behind; and the next in line gets the lock",
		needs:   []Capability{Steps},
		way:     endsAtEachStep,
	},
}

func endsAtEachStep(e *env, w int) {
	for _, try := range []bool{false, true} {
		if try && !e.s.has(Try) {
			continue
		}
		for _, held := range []bool{false, true} {
			x := &stepper{e: e, w: w, try: try, held: held, c: e.Client(), other: e.fresh()}
			x.l = e.on(x.c)
			steps := x.run(0)
			if steps == 0 {
				e.t.Fatal("no requests are seen: the backend doesn't tell of steps")
			}
			for step := 1; step <= steps && !e.t.Failed(); step++ {
				x.run(step)
			}
		}
	}
}

// A stepper disturbs one call, on a lock that is free or becomes free later.
type stepper struct {
	e         *env
	w         int
	try, held bool
	c         Client
	l, other  Lock
}

// run ends the call's context at its n-th request, for 0 at none. It returns how
// many requests there were.
func (x *stepper) run(n int) int {
	e := x.e
	e.t.Helper()
	w := x.w
	var s *scene
	if x.held {
		s = e.hold(x.other, x.w)
		w = s.rival
	}
	acquire := x.l.Enter[w].Acquire
	if x.try {
		acquire = x.l.Enter[w].Try
	}
	ctx, cancel := context.WithCancelCause(e.t.Context())
	defer cancel(nil)
	var mu sync.Mutex
	seen := 0
	x.c.OnStep(func() {
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen == n {
			cancel(errEnough)
		}
	})
	a := e.startUnder(ctx, acquire, e.seen(x.l, w))
	if x.held {
		e.Pass(time.Second)
		e.Settle()
		s.release()
	}
	g, err := a.result()
	x.c.OnStep(nil)
	switch {
	case err == nil:
		e.release(g)
	case x.try && errors.Is(err, recipes.ErrBusy):
	case n == 0 || !errors.Is(err, errEnough):
		e.t.Errorf("step %d: %v", n, err)
	}
	if left, ok := e.Empty(lockX); !ok {
		e.t.Errorf("step %d: left behind: %s", n, left)
	}
	e.release(e.get(x.other, x.w))
	mu.Lock()
	defer mu.Unlock()
	return seen
}
