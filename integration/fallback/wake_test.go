package fallback_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// The lock is given up after a waiter's first try and before its subscription is
// confirmed: the message goes to nobody. R25
func TestReleaseBeforeTheSubscription(t *testing.T) {
	s := redistest.Borrow(t)
	l := link.New(t, s.Addr())
	noneLeft(t, s)
	a, b := client(t, s.Addr(), byTimer(), fallback.TTL(time.Hour)), client(t, l.Addr(), byTimer(), fallback.TTL(time.Hour))
	g := await.Grant(t, a.Lock)
	trap := l.HoldRequest(link.Containing("subscribe"))
	next := await.Later(t, b.Lock)
	<-trap.Sprung()
	await.InLine(t, a, 2)
	await.Release(t, g)
	trap.Release()
	await.Release(t, next.Within(t, soon))
}

// The subscription is broken at the moment of the release, again and again: what was
// published in between is gone. R26
func TestSubscriptionsKilledAtTheRelease(t *testing.T) {
	s := redistest.Borrow(t)
	noneLeft(t, s)
	a, b := client(t, s.Addr(), byTimer(), fallback.TTL(time.Hour)), client(t, s.Addr(), byTimer(), fallback.TTL(time.Hour))
	for i := range 30 {
		g := await.Grant(t, a.Lock)
		next := await.Later(t, b.Lock)
		await.InLine(t, a, 2)
		if i%3 > 0 { // or else before it stands
			await.Until(t, "a subscription", func() bool { return s.Subscribers(t) > 0 })
		}
		if i%2 == 0 {
			s.KillSubscribers(t)
			await.Release(t, g)
		} else {
			released := make(chan error)
			go func() { released <- g.Release(t.Context()) }()
			s.KillSubscribers(t)
			if err := <-released; err != nil {
				t.Fatal(err)
			}
		}
		await.Release(t, next.Within(t, soon))
	}
}

// One client waits for thousands of locks: one subscription, no error, and each of
// them is had when it is given up. R28, R29
func TestWaitingForManyLocks(t *testing.T) {
	s := redistest.Borrow(t)
	noneLeft(t, s)
	holder := open(t, dial(t, s.Addr()), byTimer(), fallback.TTL(time.Minute))
	waiter := open(t, dial(t, s.Addr()), byTimer(), fallback.TTL(time.Minute))
	n := many / 2
	each := func(f func(name string) error) {
		all(t, n, func(i int) error { return f(fmt.Sprintf("%s/%d", key(t), i)) })
	}
	each(func(name string) error {
		m, err := fallback.NewMutex(holder, name)
		if err == nil {
			_, err = m.Lock(t.Context())
		}
		return err
	})
	var (
		wg     sync.WaitGroup
		errs   = make(chan error, n)
		before = s.Counts(t)
	)
	for i := range n {
		wg.Go(func() {
			m, err := fallback.NewMutex(waiter, fmt.Sprintf("%s/%d", key(t), i))
			if err == nil {
				var g *recipes.Grant
				if g, err = m.Lock(await.Context(t)); err == nil {
					err = g.Release(t.Context())
				}
			}
			errs <- err
		})
	}
	await.Until(t, "all to queue", func() bool { return s.Counts(t).Since(before).Of("zadd") >= 2*n })
	if subscribers, channels := s.Subscribers(t), s.Channels(t); subscribers > 1 || len(channels) > 1 {
		t.Errorf("%d subscriptions to %d channels", subscribers, len(channels))
	}
	ok(t, holder.Close()) // which gives back everything
	wg.Wait()
	close(errs)
	for err := range errs {
		ok(t, err)
	}
}

// Sixteen clients hand one lock round: a few commands for each time, in the order of
// arrival, so that all get the same share. R30
func TestSixteenClientsHandOver(t *testing.T) {
	const clients, rounds = 16, 40
	s := redistest.Borrow(t)
	noneLeft(t, s)
	first := client(t, s.Addr(), byTimer())
	g := await.Grant(t, first.Lock)
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		order  []int // who had the lock
		queues = make([]*fallback.Mutex, clients)
	)
	for i := range clients {
		queues[i] = client(t, s.Addr(), byTimer())
		begun := make(chan struct{})
		wg.Go(func() {
			close(begun)
			for range rounds {
				g, err := queues[i].Lock(await.Context(t))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				if err := g.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		<-begun
		await.InLine(t, first, i+2)
	}
	await.Until(t, "subscriptions", func() bool { return s.Subscribers(t) == clients })
	before := s.Counts(t)
	await.Release(t, g)
	wg.Wait()
	counts := s.Counts(t).Since(before)
	t.Logf("%d hand-overs: %v", len(order), counts)
	// what the scripts call is counted beside them
	sent := counts.Of("evalsha", "eval", "subscribe", "unsubscribe", "script|load", "wait", "ping")
	if perHandOver := float64(sent) / float64(len(order)); perHandOver > 3 {
		t.Errorf("%.2f commands per hand-over", perHandOver)
	}
	// All stood in line: nobody comes again before all others had their turn. A client
	// whose goroutine is late to queue again lets others pass, so shares are compared.
	for n := 1; n <= rounds-4; n++ {
		seen := make([]int, clients)
		for _, i := range order[:n*clients] {
			seen[i]++
		}
		for i, had := range seen {
			if had < n-4 || had > n+4 {
				t.Fatalf("after %d rounds client %d had the lock %d times: %v", n, i, had, seen)
			}
		}
	}
}
