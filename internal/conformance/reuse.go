package conformance

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var reuseChecks = []check{
	{
		name:    "ReusedAfterALoss",
		promise: "a lock object holds nothing: many goroutines share it, and it goes on for all of them when the session behind it is lost and replaced",
		needs:   []Capability{Losing, Requeueing},
		way:     reusedAfterALoss,
	},
}

// Only one client takes part: when it comes in again after a loss, it must have
// revoked what it held before.
func reusedAfterALoss(e *env, w int) {
	const goroutines, rounds = 6, 4
	c := e.Client()
	l := e.on(c)
	var granted atomic.Int32
	lose := make(chan struct{}, goroutines*rounds)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for n := 0; n < rounds; {
				a := e.start(l, w)
				<-a.done
				if a.err != nil {
					e.t.Errorf("after %d grants: %v", granted.Load(), a.err)
					return
				}
				if granted.Add(1)%7 == 0 {
					lose <- struct{}{}
					select { // this one is lost
					case <-a.g.Done():
					case <-e.t.Context().Done():
						return
					}
				}
				e.Pass(time.Millisecond)
				err := a.g.Release(e.context())
				if err == nil {
					n++
				} else if !errors.Is(err, recipes.ErrRevoked) {
					e.t.Errorf("release: %v", err)
				}
			}
			lose <- struct{}{}
		})
	}
	e.bounded("all rounds of all goroutines", func() {
		var over sync.WaitGroup
		over.Go(func() {
			wg.Wait()
			close(lose)
		})
		for range lose {
			if !e.t.Failed() {
				c.Lose()
			}
		}
		over.Wait()
	})
	if granted.Load() < goroutines*rounds {
		e.t.Errorf("%d granted", granted.Load())
	}
}
