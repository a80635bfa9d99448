package mutex_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
)

// handsOver has the holder cut off by whatever cut does while another waits, and
// returns the lead.
func handsOver(t *testing.T, holder, waiter *mutex.Mutex, cut func()) time.Duration {
	t.Helper()
	held := await.Grant(t, holder.Lock)
	next := await.Later(t, waiter.Lock)
	await.InLine(t, waiter, 2)
	g, lead := await.HandOver(t, held, next, cut)
	await.Release(t, g)
	return lead
}

func TestClientCutOff(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	for _, test := range []struct {
		name string
		cut  func(*link.Link)
	}{
		{"Hole", (*link.Link).Hole},
		{"HoleUp", (*link.Link).HoleUp},
		{"HoleDown", (*link.Link).HoleDown},
		{"Refuse", (*link.Link).Refuse},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := e.LockPath(t)
			l := link.New(t, e.Server(0))
			told := make(chan recipes.Revocation, 10)
			holder := newMutex(t, ensemble.Open(t, 3*time.Second, l.Addr()), path, recipes.OnRevoke(func(r recipes.Revocation) { told <- r }))
			waiter := newMutex(t, ensemble.Open(t, 3*time.Second, e.Server(0)), path)
			handsOver(t, holder, waiter, func() { test.cut(l) })
			if r := <-told; !errors.Is(r.Cause, recipes.ErrSessionLost) {
				t.Errorf("revoked for %v", r.Cause)
			}
			l.Heal()
			// the lock goes on working for the client that was cut off
			await.Release(t, await.Grant(t, holder.Lock))
			if len(told) > 0 {
				t.Errorf("told again of %v", <-told)
			}
		})
	}
}

// A connection that breaks and comes back is no loss, however often.
func TestClientsConnectionBreaks(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	path := e.LockPath(t)
	l := link.New(t, e.Server(0))
	m := newMutex(t, ensemble.Open(t, longSession, l.Addr()), path)
	g := await.Grant(t, m.Lock)
	for range 10 {
		l.Cut()
		if err := g.Verify(await.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	await.Release(t, g)
}

// The follower to which the holder is connected is cut off from its leader, at
// some moment between two heartbeats. It goes on answering reads and pings for
// much longer than the session lasts: see ensemble.CutFromPeers.
func TestFollowerCutOffFromItsLeader(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{
		TickTime:  500 * time.Millisecond,
		SyncLimit: 40, // 20 s
	})
	const timeout = 3 * time.Second
	path := e.LockPath(t)
	trap := e.Followers(t)[0]
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	least := time.Hour
	for range rounds {
		holder := newMutex(t, ensemble.Open(t, timeout, e.Server(trap)), path)
		waiter := newMutex(t, ensemble.Open(t, timeout, e.Server(e.Leader(t))), path)
		lead := handsOver(t, holder, waiter, func() {
			time.Sleep(rand.N(timeout / 2))
			e.CutFromPeers(t, trap)
		})
		least = min(least, lead)
		if m := e.Mode(trap); m != ensemble.Follower {
			t.Errorf("server %d is %q: this was no trap", trap, m)
		}
		e.Heal(t, trap)
		e.WaitReady(t)
	}
	t.Logf("smallest lead of %d: %v", rounds, least)
}
