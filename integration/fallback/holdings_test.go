package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// Somebody removes the lock, or the whole database: the holder is told, once, by the
// next renewal; a waiter gets it without anybody's release; the late release says so
// and leaves the new holder's alone. R09, R11, R12, R14, R20, R62
func TestLockIsRemoved(t *testing.T) {
	s := redistest.Borrow(t)
	noneLeft(t, s)
	told := make(chan recipes.Revocation, 10)
	holder := client(t, s.Addr(), fallback.TTL(3*time.Second), recipes.OnRevoke(func(r recipes.Revocation) { told <- r }))
	waiter := client(t, s.Addr(), fallback.TTL(3*time.Second))
	remove := func(which func(string) bool) {
		for _, k := range s.Keys(t) {
			if which(k) {
				s.Do(t, "DEL", k)
			}
		}
	}
	var last *recipes.Grant
	for _, test := range []struct {
		name   string
		remove func()
	}{
		{"Lock", func() { remove(func(k string) bool { return s.Do(t, "TYPE", k) == "string" && !isToken(k) }) }},
		{"EverythingOfTheLock", func() { remove(func(string) bool { return true }) }},
		{"Database", func() { s.Do(t, "FLUSHALL") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := await.Grant(t, holder.Lock)
			if last != nil {
				rises(t, last, g)
			}
			next := await.Later(t, waiter.Lock)
			await.InLine(t, waiter, 2)
			test.remove()
			second := next.Grant(t)
			ended(t, g, recipes.ErrNodeDeleted)
			if r := <-told; r.Token != g.Token() || !errors.Is(r.Cause, recipes.ErrNodeDeleted) {
				t.Errorf("told of %+v", r)
			}
			rises(t, g, second)
			if err := g.Release(await.Context(t)); !errors.Is(err, recipes.ErrRevoked) {
				t.Errorf("late release: %v", err)
			}
			stands(t, second)
			await.Release(t, second)
			last = second
			if len(told) > 0 {
				t.Errorf("told again of %+v", <-told)
			}
		})
	}
}

// The lock goes to another before its holder knows, who releases it in good faith. R09
func TestReleaseOfWhatAnotherHas(t *testing.T) {
	s := redistest.Borrow(t)
	noneLeft(t, s)
	a, b := client(t, s.Addr(), fallback.TTL(time.Hour)), client(t, s.Addr(), fallback.TTL(time.Hour))
	g := await.Grant(t, a.Lock)
	for _, k := range s.Keys(t) {
		s.Do(t, "PEXPIRE", k, 1)
	}
	second := await.Grant(t, b.Lock)
	if err := g.Release(await.Context(t)); !errors.Is(err, recipes.ErrRevoked) {
		t.Errorf("release: %v", err)
	}
	stands(t, second)
	await.Release(t, second)
}

// Ten thousand locks of one client are renewed in at most a hundred scripts per
// interval, a third of the TTL, from the first on, and none of them is lost. R21
func TestManyLocks(t *testing.T) {
	const ttl, batch = 3 * time.Second, 100
	s := redistest.Borrow(t)
	noneLeft(t, s)
	lost := make(chan recipes.Revocation, many)
	c := open(t, dial(t, s.Addr()), fallback.TTL(ttl), recipes.OnRevoke(func(r recipes.Revocation) { lost <- r }))
	grants := make([]*recipes.Grant, many)
	warm, err := fallback.NewMutex(c, key(t)+"/first")
	ok(t, err)
	first := await.Grant(t, warm.Lock) // the server has to know the scripts
	stands(t, first)
	await.Release(t, first)
	before, begun := s.Counts(t), time.Now()
	all(t, many, func(i int) error {
		m, err := fallback.NewMutex(c, fmt.Sprintf("%s/%d", key(t), i))
		if err != nil {
			return err
		}
		grants[i], err = m.Lock(await.Context(t))
		return err
	})
	select {
	case r := <-lost:
		t.Errorf("lost: %+v", r)
	case <-time.After(ttl + ttl/3): // long enough to lose what is not renewed
	}
	counts := s.Counts(t).Since(before)
	scripts, renewals := counts.Of("evalsha", "eval")-many, counts.Of("pexpire") // each Lock was a script
	intervals := int(time.Since(begun)/(ttl/3)) + 1                              // one begins at each end
	t.Logf("%d renewals in %d scripts, %d intervals", renewals, scripts, intervals)
	if renewals < 3*many {
		t.Errorf("%d renewals of %d locks", renewals, many)
	}
	if limit := intervals * many / batch; scripts > limit {
		t.Errorf("%d scripts in %d intervals, want %d at most", scripts, intervals, limit)
	}
	all(t, many, func(i int) error { return grants[i].Release(await.Context(t)) })
	if len(lost) > 0 {
		t.Errorf("%d were lost, such as %+v", len(lost), <-lost)
	}
}

// all calls f with 0 to n-1, many at a time, and fails the test for each error.
func all(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var (
		wg   sync.WaitGroup
		next = make(chan int)
	)
	for range 100 {
		wg.Go(func() {
			for i := range next {
				if err := f(i); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// Ten thousand times a lock is wanted by several clients, and one wait in four is
// given up at a random moment. Nothing remains of that: no key, no renewal, no
// subscription, no goroutine. R17, R18, R28
func TestManyContendedCycles(t *testing.T) {
	const clients, goroutines, names = 4, 8, 4
	s := redistest.Borrow(t)
	noneLeft(t, s)
	var opened []*fallback.Client
	for range clients {
		opened = append(opened, open(t, dial(t, s.Addr())))
	}
	var (
		held [names]sync.Mutex // seen from here, each lock is one too
		all  sync.WaitGroup
	)
	for i := range clients * goroutines {
		c := opened[i%clients]
		all.Go(func() {
			for n := range many / (clients * goroutines) {
				name := n % names
				m, err := fallback.NewMutex(c, fmt.Sprintf("%s/%d", key(t), name))
				if err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
				if rand.IntN(4) == 0 {
					ctx, cancel = context.WithTimeout(t.Context(), rand.N(5*time.Millisecond))
				}
				g, err := m.Lock(ctx)
				if err == nil {
					if !held[name].TryLock() {
						t.Error("two hold the lock")
						cancel()
						return
					}
					held[name].Unlock()
					err = g.Release(t.Context())
				} else if ctx.Err() != nil {
					err = nil
				}
				cancel()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	nothingLeft(t, s)
	if n := s.Subscribers(t); n > clients {
		t.Errorf("%d subscriptions of %d clients", n, clients)
	}
	for _, c := range opened {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	counts := s.Counts(t)
	// nobody is left who could send anything
	if more := s.Counts(t).Since(counts).Of("evalsha", "eval", "subscribe", "ping"); more > 0 {
		t.Errorf("%d commands after all were closed", more)
	}
}
