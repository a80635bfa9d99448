package mutex_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
)

// handsOver has the holder cut off by whatever cut does, and waits for the next
// grant: by then the holder's must have ended. It returns the lead: how long
// before the next grant returned the first one was seen ended.
func handsOver(t *testing.T, holder, waiter *mutex.Mutex, cut func()) (lead time.Duration) {
	t.Helper()
	held := lock(t, holder)
	next := lockLater(t, waiter)
	queued(t, waiter, 2)
	ended := make(chan time.Time, 1)
	go func() {
		<-held.Done()
		ended <- time.Now()
	}()
	cut()
	start := time.Now()
	g := next.get(t)
	granted := time.Now()
	if isOpen(held) {
		t.Errorf("token %v was granted while the cut-off holder still had token %v", g.Token(), held.Token())
	}
	var end time.Time
	select {
	case end = <-ended:
	case <-bounded(t).Done():
		t.Fatal("the cut-off holder's grant does not end")
	}
	t.Logf("holder's grant over %v after the cut, next grant after %v: lead %v", end.Sub(start), granted.Sub(start), granted.Sub(end))
	if err := held.Err(); !errors.Is(err, recipes.ErrRevoked) || !errors.Is(err, recipes.ErrSessionLost) {
		t.Errorf("holder's grant ended with %v", err)
	}
	if g.Token() <= held.Token() {
		t.Errorf("token %v came after %v", g.Token(), held.Token())
	}
	release(t, g)
	return granted.Sub(end)
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
			path := lockPath(t, e)
			l := link.New(t, e.Server(0))
			told := make(chan recipes.Revocation, 10)
			holder := newMutex(t, open(t, 3*time.Second, l.Addr()), path, recipes.OnRevoke(func(r recipes.Revocation) { told <- r }))
			waiter := newMutex(t, open(t, 3*time.Second, e.Server(0)), path)
			handsOver(t, holder, waiter, func() { test.cut(l) })
			if r := <-told; !errors.Is(r.Cause, recipes.ErrSessionLost) {
				t.Errorf("revoked for %v", r.Cause)
			}
			l.Heal()
			// the lock goes on working for the client that was cut off
			release(t, lock(t, holder))
			if len(told) > 0 {
				t.Errorf("told again of %v", <-told)
			}
		})
	}
}

// A connection that breaks and comes back is no loss, however often.
func TestClientsConnectionBreaks(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	path := lockPath(t, e)
	l := link.New(t, e.Server(0))
	m := newMutex(t, open(t, longSession, l.Addr()), path)
	g := lock(t, m)
	for range 10 {
		l.Cut()
		if err := g.Verify(bounded(t)); err != nil {
			t.Fatal(err)
		}
	}
	release(t, g)
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
	path := lockPath(t, e)
	trap := e.Followers(t)[0]
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	least := time.Hour
	for range rounds {
		holder := newMutex(t, open(t, timeout, e.Server(trap)), path)
		waiter := newMutex(t, open(t, timeout, e.Server(e.Leader(t))), path)
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
