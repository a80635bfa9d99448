package fair_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// What an uncontended lock costs, as the package's documentation says.
func TestUncontendedCost(t *testing.T) {
	const roundTrip = 10 * time.Millisecond
	for _, c := range []struct {
		name       string
		opts       []recipes.Option
		requests   int
		roundTrips time.Duration
	}{
		{"without a flow", nil, 3, 1},
		{"flow", []recipes.Option{fair.Flow("a", 1)}, 9, 3},
		{"flow by hold time", []recipes.Option{fair.Flow("a", 1), fair.ByHoldTime()}, 12, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, func(e env) {
				l := e.lock(c.opts...)
				for range 2 { // directories are there, and heartbeats are known to be allowed
					e.Release(e.Lock(l))
					time.Sleep(time.Second)
				}
				e.Delay(roundTrip)
				e.ResetCounts()
				began := time.Now()
				g := e.Lock(l)
				took := time.Since(began) / roundTrip
				time.Sleep(100 * time.Millisecond)
				before := e.Requests().Total()
				e.Release(g)
				time.Sleep(100 * time.Millisecond)
				if n := e.Requests(); n.Total() != c.requests || took != c.roundTrips {
					t.Errorf("%d requests (%d before the release) and %d round trips to the grant, want %d and %d; %+v", n.Total(), before, took, c.requests, c.roundTrips, n)
				}
				e.Delay(0)
				e.empty()
			})
		})
	}
}

// What a hand-over costs depends neither on how many wait nor on how many flows there
// are: in requests, in bytes, and in those who are woken.
func TestHandOverCost(t *testing.T) {
	type scale struct{ flows, waiters int } // all of them
	type cost struct{ requests, lists, bytes, events float64 }
	measure := func(s scale, opts ...recipes.Option) (c cost) {
		run(t, func(e env) {
			var locks []*fair.Lock
			for i := range 8 { // sessions, and each flow has some in several
				sess := e.Open()
				for f := range s.flows {
					if s.flows >= 8 && f%8 != i {
						continue
					}
					locks = append(locks, e.at(sess, with(opts, fair.Flow(fmt.Sprintf("tenant %02d", f), 1))...))
				}
			}
			g := e.Lock(e.lock())
			var tickets []*fair.Ticket
			for i := range s.waiters {
				tickets = append(tickets, e.join(locks[i%len(locks)]))
				synctest.Wait()
			}
			const handOvers = 32 // which is a round of the most flows
			served := 0
			serve := func(n int) {
				t.Helper()
				for range n {
					e.Release(g)
					synctest.Wait()
					g = nil
					for i, x := range tickets {
						if attempt := e.Start(x.Wait); !attempt.Pending() {
							g = attempt.Grant(now)
							tickets = append(tickets[:i], tickets[i+1:]...)
							break
						} else {
							attempt.Cancel()
						}
					}
					if g == nil {
						t.Fatalf("nobody was served after %d", served)
					}
					served++
				}
			}
			// The counts of what goes to the lock's queue and what comes to it are those
			// of a steady course only while all flows have a backlog.
			n := min(handOvers, s.waiters-s.flows)
			e.ResetCounts()
			serve(n)
			r := e.Requests()
			per := float64(n)
			c = cost{
				float64(r.Total()) / per, float64(r.Of(zktest.OpGetChildren)+r.Of(zktest.OpGetChildren2)) / per,
				float64(r.BytesIn+r.BytesOut) / per, float64(r.Events) / per,
			}
			for _, x := range tickets {
				go e.leave(x)
			}
			e.Release(g)
			time.Sleep(time.Second)
			e.empty()
		})
		return c
	}
	for _, opts := range [][]recipes.Option{nil, {fair.ByHoldTime()}} {
		var base cost
		for i, s := range []scale{{2, 64}, {2, 256}, {8, 128}, {32, 128}, {32, 256}} {
			c := measure(s, opts...)
			t.Logf("%d options, %d flows, %d waiters: %.1f requests, %.1f listings, %.0f bytes, %.1f events", len(opts), s.flows, s.waiters, c.requests, c.lists, c.bytes, c.events)
			if i == 0 {
				base = c
			}
			if c.requests > base.requests*1.15 || c.bytes > base.bytes*1.15 || c.events > base.events*1.15 {
				t.Errorf("%+v: %+v, with %+v %+v", s, c, scale{2, 16}, base)
			}
		}
	}
}
