package fair_test

import (
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
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
		{"flow", []recipes.Option{fair.Flow("a", 1)}, 7, 3},
		{"flow by hold time", []recipes.Option{fair.Flow("a", 1), fair.ByHoldTime()}, 10, 4},
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
