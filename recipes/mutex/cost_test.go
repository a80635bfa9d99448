package mutex_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 25, case 26: what a hand-over costs does not depend on how many wait.
func TestHandOverCostsTheSameForAnyNumberOfWaiters(t *testing.T) {
	type cost struct{ requests, bytes, events float64 }
	costs := map[int]cost{}
	for _, n := range []int{16, 128, 1000} {
		locktest.Run(t, func(e *locktest.Env) {
			locks := make([]*mutex.Mutex, 8)
			for i := range locks {
				locks[i] = e.New()
			}
			ctx, cancel := context.WithCancel(e.T.Context())
			defer cancel()
			granted := make(chan *recipes.Grant, n)
			g := e.Lock(locks[0])
			for i := range n {
				go func() {
					if g, err := locks[(i+1)%8].Lock(ctx); err == nil {
						granted <- g
					}
				}()
				synctest.Wait() // so that neighbours are of different sessions
			}
			e.Queued(n + 1)
			if lists := listings(e); lists > 8 { // each session may look once at a directory that it did not make
				t.Errorf("%d waiters: %d listings while they queued", n, lists)
			}
			e.ResetCounts()
			const handOvers = 15
			for range handOvers {
				e.Release(g)
				g = locktest.Await(e, granted)
			}
			c := e.Requests()
			if lists := listings(e); lists > 0 {
				t.Errorf("%d waiters: %d listings in the normal course", n, lists)
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
		if c.requests > base.requests*1.1 || c.bytes > base.bytes*1.1 {
			t.Errorf("%d waiters: %+v, with 16: %+v", n, c, base)
		}
		if c.events > 1 {
			t.Errorf("%d waiters: %.2f events for each release", n, c.events)
		}
	}
}

func listings(e *locktest.Env) int {
	c := e.Requests()
	return c.Of(zktest.OpGetChildren) + c.Of(zktest.OpGetChildren2)
}

// An uncontended lock: create, and the directory read right behind it; one
// transaction to release. Nobody is woken, not even the releaser.
func TestUncontendedLockCostsThreeRequests(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m := e.New()
		e.Release(e.Lock(m))
		time.Sleep(time.Second)
		e.ResetCounts()
		g := e.Lock(m)
		time.Sleep(time.Millisecond)
		e.Release(g)
		time.Sleep(time.Millisecond)
		c := e.Requests()
		if c.Of(zktest.OpCreate2) != 1 || c.Of(zktest.OpGetData) != 1 || c.Of(zktest.OpMulti) != 1 || c.Total() != 3 || c.Events != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// A busy lock is found busy without writing anything.
func TestTryLockOfABusyLockWritesNothing(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m := e.New()
		g := e.Lock(e.New())
		for _, waits := range []bool{false, true} {
			if waits {
				a := e.Start(e.New().Lock)
				e.Queued(2)
				defer func() { e.Release(a.Grant(time.Minute)) }()
			}
			zxid := e.Zxid()
			e.ResetCounts()
			for range 10 {
				e.Start(m.TryLock).Fails(time.Second, recipes.ErrBusy)
			}
			if c := e.Requests(); e.Zxid() != zxid || listings(e) > 0 || c.Total() > 20 {
				t.Errorf("zxid %d, was %d; %d listings, %d requests", e.Zxid(), zxid, listings(e), c.Total())
			}
		}
		e.Release(g)
	})
}

// When a whole session of waiters dies, those who live look at a bounded number
// of nodes each.
func TestManyWaitersDieAtOnce(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		dying := e.Open()
		lives, dies := e.New(), e.Mutex(dying, recipes.FailOnLoss())
		g := e.Lock(e.New())
		const n = 50
		var waiting []*locktest.Attempt
		for i := range n {
			e.Start(dies.Lock)
			e.Queued(2*i + 2)
			waiting = append(waiting, e.Start(lives.Lock))
			e.Queued(2*i + 3)
		}
		e.ResetCounts()
		e.Expire(dying.ID())
		time.Sleep(20 * time.Second)
		if lists := listings(e); lists > n {
			t.Errorf("%d listings for %d waiters", lists, n)
		}
		e.ResetCounts()
		for i, a := range waiting {
			if !a.Pending() {
				t.Fatalf("waiter %d was granted", i)
			}
			e.Release(g)
			g = a.Grant(time.Second)
		}
		if lists := listings(e); lists > 0 {
			t.Errorf("%d listings although it was known who is ahead", lists)
		}
		e.Release(g)
	})
}

// case 79: very many of other libraries are ahead.
func TestThousandsOfContendersAreAhead(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		other := e.Open()
		const n = 5000
		for i := range n {
			e.CreateEphemeral(fmt.Sprintf("%s/_c_%08x-0000-0000-0000-000000000000-lock-%010d", locktest.Path, i*7919, i), nil, other.ID())
		}
		e.SetSequence(locktest.Path, n)
		a := e.Start(e.New().Lock)
		e.Queued(n + 1)
		time.Sleep(time.Second)
		if !a.Pending() {
			t.Fatal("granted")
		}
		e.ResetCounts()
		e.Expire(other.ID())
		e.Release(a.Grant(5 * time.Second))
		if lists := listings(e); lists > 3 {
			t.Errorf("%d listings", lists)
		}
	}, zktest.AllowOpenSessions())
}
