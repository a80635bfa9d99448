package conformance

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var exclusionChecks = []check{
	{
		name:    "Exclusion",
		promise: "while a grant's Done is open, nobody is granted what does not fit beside it, however many come and go; and everybody's turn comes",
		lock:    exclusion,
	},
	{
		name:    "AsManyAsFit",
		promise: "as many as fit hold at the same time, and no more",
		way:     asManyAsFit,
	},
}

func exclusion(e *env) {
	const clients, goroutines, rounds = 3, 3, 8
	var wg sync.WaitGroup
	for c := range clients {
		l := e.fresh()
		for n := range goroutines {
			rnd := rand.New(rand.NewPCG(uint64(c), uint64(n)))
			wg.Go(func() {
				for range rounds {
					e.comeAndGo(l, rnd)
				}
			})
		}
	}
	e.bounded("everybody's turn", wg.Wait)
	if e.witness.count == 0 {
		e.t.Error("nobody was granted anything")
	}
}

// comeAndGo is one random visit. Only those that may fail do.
func (e *env) comeAndGo(l Lock, rnd *rand.Rand) {
	w := rnd.IntN(len(l.Enter))
	ctx, cancel := context.WithCancel(e.t.Context())
	defer cancel()
	acquire, mayFail := l.Enter[w].Acquire, error(nil)
	switch rnd.IntN(4) {
	case 0:
		if l.Enter[w].Try != nil {
			acquire, mayFail = l.Enter[w].Try, recipes.ErrBusy
		}
	case 1:
		mayFail = context.Canceled
		defer time.AfterFunc(upTo(rnd, 20*time.Millisecond), cancel).Stop()
	}
	a := e.startUnder(ctx, acquire, e.seen(l, w))
	<-a.done
	if a.err != nil {
		if mayFail == nil || !errors.Is(a.err, mayFail) {
			e.t.Errorf("%s: %v", e.s.Ways[w].Name, a.err)
		}
		return
	}
	e.Pass(upTo(rnd, 10*time.Millisecond))
	if err := a.g.Release(e.context()); err != nil {
		e.t.Errorf("release: %v", err)
	}
	if rnd.IntN(2) == 0 {
		e.Pass(upTo(rnd, 10*time.Millisecond))
	}
}

func upTo(rnd *rand.Rand, d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }

func asManyAsFit(e *env, w int) {
	fit := e.s.Size / e.s.Ways[w].Takes
	n := min(fit, 4)
	var in []*recipes.Grant
	for range n {
		in = append(in, e.get(e.fresh(), w))
	}
	e.queued(n)
	if n == fit {
		more := e.start(e.fresh(), w)
		e.queued(n + 1)
		if !more.pending() {
			e.t.Error("one too many")
		}
		e.release(in[n/2])
		in[n/2] = more.grant()
	}
	for _, g := range in {
		if g.Err() != nil {
			e.t.Error(g.Err())
		}
	}
	e.release(in...)
}
