package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 15
func TestWatchesAreGoneAfterLostRaces(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m, waiter := e.New(), e.New()
		e.Release(e.Lock(m))
		e.Release(e.Lock(waiter))
		before := e.Watches()
		for range 100 {
			g := e.Lock(m)
			arrived, release := e.HoldRequest(zktest.OpGetData, 3) // own node, directory, the one ahead
			a := e.Start(waiter.Lock)
			locktest.Await(e, arrived)
			e.Release(g)
			release()
			e.Release(a.Grant(time.Second))
			e.Empty()
		}
		time.Sleep(time.Second)
		if got := e.Watches(); got != before {
			t.Errorf("%d watches, want %d", got, before)
		}
	})
}

// case 22: waits that were given up cost nothing that stays.
func TestWaitsThatWereGivenUpShareOneWatch(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		g := e.Lock(e.New())
		m := e.New()
		for range 200 {
			a := e.Start(m.Lock)
			e.Queued(2)
			a.Cancel()
			a.Fails(time.Second, context.Canceled)
			e.Queued(1)
		}
		if got := e.Watches(); got > 2 { // the holder's on its own node, the waiters' on the holder's
			t.Errorf("%d watches", got)
		}
		e.Release(g)
		time.Sleep(time.Second)
		if got := e.Watches(); got != 0 {
			t.Errorf("%d watches at the end", got)
		}
	})
}
