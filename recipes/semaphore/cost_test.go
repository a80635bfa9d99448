package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 25, case 26: what a hand-over costs does not depend on how many wait. Every
// contender has a session of its own as far as its neighbours are concerned.
func TestHandOverCostsTheSameForAnyNumberOfWaiters(t *testing.T) {
	type cost struct{ requests, bytes, events float64 }
	const size = 4
	costs := map[int]cost{}
	for _, n := range []int{16, 128, 400} {
		run(t, func(e env) {
			sems := make([]*semaphore.Semaphore, 8)
			for i := range sems {
				sems[i] = e.fresh(size)
			}
			ctx, cancel := context.WithCancel(e.T.Context())
			defer cancel()
			granted := make(chan *recipes.Grant, n)
			var held []*recipes.Grant
			for i := range size {
				held = append(held, e.held(sems[i], 1))
			}
			for i := range n {
				go func() {
					if g, err := sems[i%8].Acquire(ctx); err == nil {
						granted <- g
					}
				}()
				synctest.Wait() // in order of arrival
			}
			e.contenders(n + size)
			for range 3 { // until the head has its watches
				e.Release(held[0])
				held = append(held[1:], locktest.Await(e.Env, granted))
			}
			synctest.Wait()
			e.ResetCounts()
			const handOvers = 12
			for range handOvers {
				e.Release(held[0])
				held = append(held[1:], locktest.Await(e.Env, granted))
				synctest.Wait()
			}
			c := e.Requests()
			if l := c.Of(zktest.OpGetChildren) + c.Of(zktest.OpGetChildren2); l > 0 {
				e.T.Errorf("%d waiters: %d listings in the normal course", n, l)
			}
			costs[n] = cost{float64(c.Total()) / handOvers, float64(c.BytesOut) / handOvers, float64(c.Events) / handOvers}
			cancel()
			for _, g := range held {
				e.Release(g)
			}
			e.Empty()
		})
	}
	base := costs[16]
	for n, c := range costs {
		t.Logf("%d waiters: %.2f requests, %.1f bytes, %.2f events", n, c.requests, c.bytes, c.events)
		if c.requests > base.requests*1.1 || c.bytes > base.bytes*1.1 {
			t.Errorf("%d waiters: %+v, with 16: %+v", n, c, base)
		}
		if c.requests > 9+size {
			t.Errorf("%d waiters: %.2f requests", n, c.requests)
		}
	}
}

// A release sends one event, to the first in line; those behind it hear nothing
// until somebody is admitted.
func TestReleaseWakesOnlyTheFirstInLine(t *testing.T) {
	run(t, func(e env) {
		var held []*recipes.Grant
		for range 3 {
			held = append(held, e.held(e.fresh(3), 1))
		}
		first := e.take(e.fresh(3), 3) // needs all, so that nobody is admitted
		e.contenders(4)
		for i := range 20 {
			e.take(e.fresh(3), 1)
			e.contenders(5 + i)
		}
		e.ResetCounts()
		for i, g := range held[:2] {
			e.Release(g)
			synctest.Wait()
			if c := e.Requests(); c.Events != int64(i+1) {
				e.T.Errorf("%d events for %d releases", c.Events, i+1)
			}
		}
		if !first.Pending() {
			e.T.Fatal("granted")
		}
		e.Release(held[2])
		e.Release(first.Grant(time.Second))
	})
}

// A free permit: the node is made and the record read right behind; the slots are
// written; a plain deletion releases.
func TestFreePermitCostsFourRequests(t *testing.T) {
	run(t, func(e env) {
		s := e.fresh(3)
		e.Release(e.held(s, 1))
		time.Sleep(time.Second)
		e.ResetCounts()
		e.Release(e.held(s, 2))
		c := e.Requests()
		if c.Of(zktest.OpCreate2) != 1 || c.Of(zktest.OpGetData) != 1 || c.Of(zktest.OpMulti) != 1 || c.Of(zktest.OpDelete) != 1 || c.Total() != 4 || c.Events != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// With many permits in use and nobody in line, one listing shows which slots are
// free.
func TestPermitBesideManyHoldersCostsOneListing(t *testing.T) {
	run(t, func(e env) {
		s := e.fresh(100)
		for range 60 {
			e.held(s, 1)
		}
		e.ResetCounts()
		slotsAre(t, e.held(s, 1), 60)
		if c := e.Requests(); c.Total() != 4 {
			t.Errorf("%+v", c)
		}
	})
}
