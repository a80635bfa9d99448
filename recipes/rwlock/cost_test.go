package rwlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// An uncontended lock, of either side: create, and the directory read right behind
// it; then the release.
func TestUncontendedLocksCostThreeRequests(t *testing.T) {
	run(t, func(e *env) {
		l := e.own()
		for range 3 {
			for op, lock := range map[zktest.Op]acquire{zktest.OpDelete: l.RLock, zktest.OpMulti: l.Lock} {
				e.Release(e.Start(lock).Grant(time.Second))
				time.Sleep(time.Second)
				e.ResetCounts()
				e.Release(e.Start(lock).Grant(time.Second))
				c := e.Requests()
				if c.Of(zktest.OpCreate2) != 1 || c.Of(zktest.OpGetData) != 1 || c.Of(op) != 1 || c.Total() != 3 || c.Events != 0 {
					t.Errorf("%+v", c)
				}
			}
		}
	})
}

// case 25, case 26: what a hand-over from writer to writer costs does not depend on
// how many wait.
func TestHandOverBetweenWritersCostsTheSame(t *testing.T) {
	type cost struct{ requests, bytes, events float64 }
	costs := map[int]cost{}
	for _, n := range []int{16, 128, 400} {
		run(t, func(e *env) {
			var locks []*rwlock.RWLock
			for range 8 {
				locks = append(locks, e.own())
			}
			ctx, cancel := context.WithCancel(e.T.Context())
			defer cancel()
			granted := make(chan *recipes.Grant, n)
			g := e.write(locks[0])
			e.ResetCounts()
			for i := range n {
				go func() {
					if g, err := locks[(i+1)%8].Lock(ctx); err == nil {
						granted <- g
					}
				}()
				synctest.Wait() // so that neighbours are of different sessions
			}
			e.Queued(n + 1)
			if lists := e.listings(); lists > 32+8 { // of a short queue
				t.Errorf("%d waiters: %d listings while they queued", n, lists)
			}
			e.ResetCounts()
			const handOvers = 15
			for range handOvers {
				e.Release(g)
				g = locktest.Await(e.Env, granted)
			}
			c := e.Requests()
			if e.listings() > 0 {
				t.Errorf("%d waiters: %d listings", n, e.listings())
			}
			costs[n] = cost{float64(c.Total()) / handOvers, float64(c.BytesOut) / handOvers, float64(c.Events) / handOvers}
			cancel()
			e.Release(g)
			e.Empty()
		})
	}
	base := costs[16]
	for n, c := range costs {
		t.Logf("%d waiters: %.2f requests, %.1f bytes, %.2f events", n, c.requests, c.bytes, c.events)
		if c.requests > base.requests*1.1 || c.bytes > base.bytes*1.1 || c.events > 1 {
			t.Errorf("%d waiters: %+v, with 16: %+v", n, c, base)
		}
	}
}

// Readers that waited for a writer get in for the same few requests each, however
// many they are, also if it died.
func TestManyReadersGetInAtOnce(t *testing.T) {
	for _, died := range []bool{false, true} {
		for _, n := range []int{10, 100} {
			run(t, func(e *env) {
				var locks []*rwlock.RWLock
				for i := range 4 {
					locks = append(locks, e.own())
					e.Release(e.read(locks[i])) // it has asked once whether it may hold
				}
				w := e.write(e.own())
				var as []*locktest.Attempt
				for i := range n {
					as = append(as, e.later(locks[i%4].RLock, i+2))
				}
				e.ResetCounts()
				if died {
					e.Delete(node(w))
				} else {
					e.Release(w)
				}
				var held []*recipes.Grant
				for _, a := range as {
					held = append(held, a.Grant(time.Second))
				}
				c := e.Requests()
				t.Logf("died %v, %d readers: %d requests, %d events", died, n, c.Total(), c.Events)
				perReader := 2 // the record, and their own node
				if died {
					perReader = 5 // without a mark they look at the writer, and once more
				}
				if c.Total() > perReader*n+4*5+2 || c.Events > 5 || e.listings() > 0 {
					t.Errorf("died %v, %d readers: %d requests, %d events, %d listings", died, n, c.Total(), c.Events, e.listings())
				}
				for _, g := range held {
					e.Release(g)
				}
				e.Empty()
			})
		}
	}
}

// A writer behind readers: it does not list once for each, whatever the order in
// which they leave.
func TestWriterBehindManyReaders(t *testing.T) {
	for _, n := range []int{1, 100, 300} {
		for name, next := range map[string]func(left int) int{
			"first first": func(left int) int { return 0 },
			"last first":  func(left int) int { return left - 1 },
			"every fifth": func(left int) int { return max(0, left-1-(left*7)%5) },
		} {
			run(t, func(e *env) {
				l := e.own()
				var held []*recipes.Grant
				for range n {
					held = append(held, e.read(l))
				}
				w := e.own()
				e.Start(w.TryLock).Fails(time.Second, recipes.ErrBusy) // its session knows where it is
				e.ResetCounts()
				a := e.later(w.Lock, n+1)
				for len(held) > 0 {
					i := next(len(held))
					e.Release(held[i])
					held = append(held[:i], held[i+1:]...)
					synctest.Wait()
				}
				g := a.Grant(time.Second)
				c := e.Requests()
				requests := c.Total() - n // the readers' releases
				t.Logf("%d readers, %s: %d requests, %d listings, %d bytes", n, name, requests, e.listings(), c.BytesOut)
				if e.listings() > 5 || requests > 2*n+12 {
					t.Errorf("%d readers, %s: %d requests, %d listings", n, name, requests, e.listings())
				}
				e.Release(g)
			})
		}
	}
}
