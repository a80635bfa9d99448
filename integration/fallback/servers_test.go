package fallback_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// A user without channels can lock and release, and waiters find out by asking. R35
func TestUserWithoutChannels(t *testing.T) {
	s := redistest.Borrow(t)
	noneLeft(t, s)
	password := s.AddUser(t, "u", "~*", "+@all")
	logged := make(recorder, 1000)
	user := func() *fallback.Mutex {
		rdb := dialAs(t, s.Addr(), "u", password)
		return newMutex(t, open(t, rdb, recipes.Logger(logged.logger()), byTimer(), fallback.TTL(time.Hour)), key(t))
	}
	a, b := user(), user()
	for range 3 {
		g := await.Grant(t, a.Lock)
		next := await.Later(t, b.Lock)
		await.InLine(t, a, 2)
		await.Release(t, g)
		await.Release(t, next.Within(t, soon))
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
	s := redistest.Borrow(t)
	noneLeft(t, s)
	a, b := client(t, s.Addr(), fallback.TTL(3*time.Second)), client(t, s.Addr(), fallback.TTL(3*time.Second))
	g := await.Grant(t, a.Lock)
	ctx, giveUp := context.WithCancel(await.Context(t))
	third := await.Under(ctx, client(t, s.Addr()).Lock)
	await.InLine(t, a, 2)
	next := await.Later(t, b.Lock)
	await.InLine(t, a, 3)

	s.Fill(t)
	stands(t, g)
	await.Until(t, "a renewal", func() bool { return pttl(t, s) > 2500 })
	giveUp()
	third.Fails(t, context.Canceled)
	await.InLine(t, a, 2)
	await.Release(t, g)
	second := next.Within(t, soon)
	await.Release(t, second)
	nothingLeft(t, s)

	before := s.Refused(t, "OOM")
	late := await.Later(t, a.Lock)
	await.Until(t, "Lock to try again", func() bool { return s.Refused(t, "OOM") >= before+2 })
	late.Waits(t)
	s.Empty(t)
	await.Release(t, late.Within(t, soon))
}

// Scripts are forgotten all the time, also just before a renewal. R59
func TestScriptsAreFlushed(t *testing.T) {
	s := redistest.Borrow(t)
	noneLeft(t, s)
	steady := client(t, s.Addr(), fallback.TTL(time.Second))
	held := await.Grant(t, newMutex(t, open(t, dial(t, s.Addr()), fallback.TTL(time.Second)), "held all the time").Lock)
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
				g, err := m.Lock(await.Context(t))
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
	await.Release(t, held, await.Grant(t, steady.Lock))
}

// A server that has just become a replica refuses to write. Lock waits for better
// times. R60
func TestServerRefusesToWrite(t *testing.T) {
	s := redistest.Borrow(t)
	noneLeft(t, s)
	m := client(t, s.Addr(), fallback.TTL(time.Minute))
	g := await.Grant(t, m.Lock)
	s.Do(t, "REPLICAOF", "127.0.0.1", 1)
	next := await.Later(t, client(t, s.Addr(), fallback.TTL(time.Minute)).Lock)
	released := make(chan error, 1)
	go func() { released <- g.Release(await.Context(t)) }()
	select {
	case <-next.Done():
		t.Fatalf("of a replica: %v", next.Grant(t))
	case err := <-released:
		t.Fatalf("released on a replica: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	s.Do(t, "REPLICAOF", "NO", "ONE")
	ok(t, <-released)
	await.Release(t, next.Within(t, soon))
	if _, err := m.TryLock(await.Context(t)); errors.Is(err, recipes.ErrBusy) {
		t.Error(err)
	}
}
