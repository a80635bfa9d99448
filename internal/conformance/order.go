package conformance

import (
	"context"
	"math/rand/v2"
	"slices"
)

var orderChecks = []check{
	{
		name:    "OrderOfArrival",
		promise: "a contender is granted as soon as it fits beside all that came before it and have not left, and not before: nobody passes a waiter, also when those in the middle give up",
		needs:   []Capability{Order},
		lock:    orderOfArrival,
	},
}

func orderOfArrival(e *env) {
	locks := []Lock{e.fresh(), e.fresh(), e.fresh()}
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var line []*inLine
		for i := range 10 {
			w := rnd.IntN(len(e.s.Ways))
			line = append(line, &inLine{e.start(locks[rnd.IntN(len(locks))], w), w, i})
			e.queued(len(line))
		}
		for len(line) > 0 {
			e.checkLine(line)
			i := rnd.IntN(len(line))
			if holding := e.fitting(line); rnd.IntN(3) > 0 {
				i = rnd.IntN(holding)
			}
			if c := line[i]; i < e.fitting(line) {
				e.release(c.grant())
			} else {
				c.cancel(nil)
				c.fails(context.Canceled)
			}
			line = slices.Delete(line, i, i+1)
			e.queued(len(line))
		}
	}
}

type inLine struct {
	*attempt
	way, arrived int
}

// fitting is the model: how many, from the first in line on, are to be in.
func (e *env) fitting(line []*inLine) int {
	sum := 0
	for i, c := range line {
		if sum += e.s.Ways[c.way].Takes; sum > e.s.Size {
			return i
		}
	}
	return len(line)
}

func (e *env) checkLine(line []*inLine) {
	e.t.Helper()
	n := e.fitting(line)
	for _, c := range line[n:] {
		if isDone(c.done) {
			e.t.Fatalf("contender %d (%s) came in before its turn, or gave up: %v", c.arrived, e.s.Ways[c.way].Name, c.err)
		}
	}
	for _, c := range line[:n] {
		if g := c.grant(); g.Err() != nil {
			e.t.Fatalf("contender %d: %v", c.arrived, g.Err())
		}
	}
}
