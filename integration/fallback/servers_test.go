package fallback_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// A user without channels can lock and release, and waiters find out by asking. R35
func TestUserWithoutChannels(t *testing.T) {
	s := redistest.Start(t)
	noneLeft(t, s)
	password := s.AddUser(t, "u", "~*", "+@all")
	logged := make(recorder, 1000)
	user := func() *fallback.Mutex {
		rdb := dialAs(t, s.Addr(), "u", password)
		return newMutex(t, open(t, rdb, recipes.Logger(logged.logger()), byTimer(), fallback.TTL(time.Hour)), key(t))
	}
	a, b := user(), user()
	for range 3 {
		g := lock(t, a)
		next := lockLater(t, b)
		queued(t, a, 2)
		release(t, g)
		release(t, next.within(t, soon))
	}
	if n := len(logged); n < 1 || n > 2 {
		t.Errorf("%d warnings of two clients", n)
	}
	for len(logged) > 0 {
		t.Log(<-logged)
	}
}

// A server that is full still lets locks be verified, renewed, given up and handed
// over, and waiters leave. Those who want a lock have it when there is room. R61
func TestServerIsFull(t *testing.T) {
	s := redistest.Start(t)
	noneLeft(t, s)
	a, b := client(t, s.Addr(), fallback.TTL(3*time.Second)), client(t, s.Addr(), fallback.TTL(3*time.Second))
	g := lock(t, a)
	ctx, giveUp := context.WithCancel(bounded(t))
	third := lockUnder(ctx, client(t, s.Addr()))
	queued(t, a, 2)
	next := lockLater(t, b)
	queued(t, a, 3)

	s.Fill(t)
	stands(t, g)
	eventually(t, "a renewal", func() bool { return pttl(t, s) > 2500 })
	giveUp()
	third.fails(t, context.Canceled)
	queued(t, a, 2)
	release(t, g)
	second := next.within(t, soon)
	release(t, second)
	nothingLeft(t, s)

	late := lockLater(t, a)
	select {
	case g := <-late.grant:
		t.Fatalf("on a full server: %v, %v", g, late.err)
	case <-time.After(100 * time.Millisecond):
	}
	s.Empty(t)
	release(t, late.within(t, soon))
}

// Scripts are forgotten all the time, also just before a renewal. R59
func TestScriptsAreFlushed(t *testing.T) {
	s := redistest.Start(t)
	noneLeft(t, s)
	steady := client(t, s.Addr(), fallback.TTL(time.Second))
	held := lock(t, newMutex(t, open(t, dial(t, s.Addr()), fallback.TTL(time.Second)), "held all the time"))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		m := client(t, s.Addr(), fallback.TTL(time.Second))
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				g, err := m.Lock(bounded(t))
				if err == nil {
					err = g.Release(t.Context())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		s.FlushScripts(t)
	}
	close(stop)
	wg.Wait()
	ok(t, held.Err())
	release(t, held, lock(t, steady))
}

// A server that has just become a replica refuses to write. Lock waits for better
// times. R60
func TestServerRefusesToWrite(t *testing.T) {
	s := redistest.Start(t)
	noneLeft(t, s)
	m := client(t, s.Addr(), fallback.TTL(time.Minute))
	g := lock(t, m)
	s.Do(t, "REPLICAOF", "127.0.0.1", 1)
	next := lockLater(t, client(t, s.Addr(), fallback.TTL(time.Minute)))
	released := make(chan error, 1)
	go func() { released <- g.Release(bounded(t)) }()
	select {
	case got := <-next.grant:
		t.Fatalf("of a replica: %v, %v", got, next.err)
	case err := <-released:
		t.Fatalf("released on a replica: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	s.Do(t, "REPLICAOF", "NO", "ONE")
	ok(t, <-released)
	release(t, next.within(t, soon))
	if _, err := m.TryLock(bounded(t)); errors.Is(err, recipes.ErrBusy) {
		t.Error(err)
	}
}
