package fallback_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/docker"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// five starts the servers of a Redlock, which know nothing of each other.
func five(t *testing.T) []*redistest.Server {
	t.Helper()
	servers := redistest.StartSeveral(t, 5)
	noneLeft(t, servers...)
	return servers
}

// long is a time limit of the servers that is never up unless one of them hangs, however
// busy the machine is.
func long() recipes.Option { return fallback.NodeTimeout(fallback.MaxNodeTimeout) }

// clients returns a way to each server.
func clients(t *testing.T, servers []*redistest.Server) (list []redis.UniversalClient) {
	t.Helper()
	for _, s := range servers {
		list = append(list, dial(t, s.Addr()))
	}
	return list
}

func tryRedlock(t *testing.T, servers []redis.UniversalClient, opts ...recipes.Option) (*fallback.Redlock, error) {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := fallback.NewRedlock(servers, key(t), append([]recipes.Option{recipes.Logger(logger)}, opts...)...)
	if err == nil {
		t.Cleanup(func() { r.Close() })
	}
	return r, err
}

// redlock returns the test's lock. The servers have just been started, so they would
// not count yet: a test that is not about that has them count.
func redlock(t *testing.T, servers []*redistest.Server, opts ...recipes.Option) *fallback.Redlock {
	t.Helper()
	return redlockOf(t, clients(t, servers), append([]recipes.Option{fallback.CountRestarted()}, opts...)...)
}

func redlockOf(t *testing.T, servers []redis.UniversalClient, opts ...recipes.Option) *fallback.Redlock {
	t.Helper()
	r, err := tryRedlock(t, servers, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func had(t *testing.T, r *fallback.Redlock) *recipes.Grant {
	t.Helper()
	return await.Grant(t, r.Lock)
}

// holdings returns on how many servers somebody has the lock.
func holdings(t *testing.T, servers []*redistest.Server) (n int) {
	t.Helper()
	for _, s := range servers {
		for _, k := range s.Keys(t) {
			if strings.HasSuffix(k, "}:redlock") {
				n++
			}
		}
	}
	return n
}

// Who has not got more than half of the servers gives back those it has got. R49
func TestRedlockMissesItsQuorum(t *testing.T) {
	servers := five(t)
	a := redlock(t, servers, long())
	// another has it on three, since it can't reach the others
	some := clients(t, servers)
	for _, i := range []int{1, 3} {
		some[i] = unreachable(t)
	}
	b := redlockOf(t, some, fallback.CountRestarted(), long())
	g := had(t, b)
	await.Until(t, "the lock on three servers", func() bool { return holdings(t, servers) == 3 })
	before := []redistest.Counts{servers[1].Counts(t), servers[3].Counts(t)}
	if _, err := a.TryLock(await.Context(t)); !errors.Is(err, recipes.ErrBusy) {
		t.Errorf("TryLock: %v", err)
	}
	for n, i := range []int{1, 3} {
		await.Until(t, "what was granted to be given back", func() bool {
			return servers[i].Counts(t).Since(before[n]).Of("del") == 1
		})
	}
	if n := holdings(t, servers); n != 3 {
		t.Errorf("on %d servers, want the three of the holder", n)
	}
	stands(t, g)
	await.Release(t, g)
	await.Release(t, had(t, a))
}

// One server of five hangs: nobody waits for it, neither in Lock nor in Release, and
// when it goes on, nothing of ours is left on it. R50
func TestOneServerOfARedlockHangs(t *testing.T) {
	servers := five(t)
	list := clients(t, servers)
	list[2] = redis.NewClient(&redis.Options{Addr: servers[2].Addr(), ReadTimeout: 2 * await.Patience})
	t.Cleanup(func() { list[2].Close() })
	r := redlockOf(t, list, fallback.CountRestarted(), long(), fallback.TTL(time.Hour))
	await.Release(t, had(t, r))
	nothingLeft(t, servers...)
	servers[2].Pause(t)
	others := slices.Concat(servers[:2], servers[3:])
	for range 10 {
		begun := time.Now()
		g := had(t, r)
		if time.Since(begun) >= fallback.MaxNodeTimeout {
			t.Error("Lock has waited for the server that hangs")
		}
		begun = time.Now()
		await.Release(t, g)
		if time.Since(begun) >= fallback.MaxNodeTimeout {
			t.Error("Release has waited for the server that hangs")
		}
		nothingLeft(t, others...) // or it would take the one that hangs to know who has most of them
	}
	servers[2].Unpause(t)
	nothingLeft(t, servers...) // long before the TTL is over
	await.Release(t, had(t, r))
}

// No server answers in time: nobody has the lock, and what the requests do when they
// are carried out after all is undone. R52
func TestAllServersOfARedlockAreSlow(t *testing.T) {
	servers := five(t)
	r := redlock(t, servers, fallback.TTL(time.Hour))
	await.Release(t, had(t, r))
	for _, s := range servers {
		s.Pause(t)
	}
	if g, err := r.TryLock(await.Context(t)); !errors.Is(err, fallback.ErrNoQuorum) {
		t.Errorf("TryLock: %v, %v", g, err)
	}
	ctx, cancel := context.WithCancel(await.Context(t))
	failed := make(chan error, 1)
	go func() {
		_, err := r.Lock(ctx)
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("Lock: %v", err)
	}
	for _, s := range servers {
		s.Unpause(t)
	}
	nothingLeft(t, servers...)
	await.Release(t, had(t, r))
}

// A holder has three servers of five, one of which restarts empty; another client has
// the other two. Where restarted servers count, both hold the lock. By default the
// second waits until the first knows that it is over. R53
func TestServerOfARedlockRestartsEmpty(t *testing.T) {
	servers := five(t)
	parties := func(opts ...recipes.Option) (a, b *fallback.Redlock) {
		near, far := clients(t, servers), clients(t, servers)
		for _, i := range []int{3, 4} {
			near[i] = unreachable(t)
		}
		for _, i := range []int{0, 1} {
			far[i] = unreachable(t)
		}
		return redlockOf(t, near, opts...), redlockOf(t, far, opts...)
	}
	t.Run("CountRestarted", func(t *testing.T) {
		a, b := parties(fallback.CountRestarted(), long(), fallback.FixedLease(), fallback.TTL(time.Minute))
		first := had(t, a)
		servers[2].Kill(t)
		servers[2].Start(t)
		second := had(t, b)
		if first.Err() != nil || second.Err() != nil {
			t.Errorf("%v, %v: want two holders", first.Err(), second.Err())
		}
		first.Release(await.Context(t))
		await.Release(t, second)
	})
	t.Run("Default", func(t *testing.T) {
		a, b := parties(fallback.TTL(5 * time.Second))
		first := had(t, a) // when the servers are old enough
		servers[2].Kill(t)
		servers[2].Start(t)
		second := had(t, b)
		if first.Err() == nil {
			t.Error("two hold the lock")
		}
		ended(t, first, recipes.ErrSessionLost)
		rises(t, first, second)
		await.Release(t, second)
	})
}

// Full servers: what is held is verified, renewed and given back. Who wants the lock has it
// when there is room. R61
func TestServersOfARedlockAreFull(t *testing.T) {
	servers := five(t)
	a := redlock(t, servers, long(), fallback.TTL(time.Minute))
	g := had(t, a)
	stands(t, g) // the servers know the scripts
	for _, s := range servers {
		s.Fill(t)
	}
	before := g.Remaining()
	stands(t, g)
	if now := g.Remaining(); now <= before {
		t.Errorf("%v remain after a renewal, and %v did before", now, before)
	}
	await.Release(t, g)
	if n := holdings(t, servers); n > 2 { // three were enough
		t.Errorf("left on %d servers", n)
	}
	if g, err := a.TryLock(await.Context(t)); !errors.Is(err, fallback.ErrNoQuorum) {
		t.Errorf("on full servers: %v, %v", g, err)
	}
	late := await.Later(t, a.Lock)
	for _, s := range servers {
		s.Empty(t)
	}
	await.Release(t, late.Grant(t))
}

// Five clients want the lock all the time. Each has it again and again, one at a time,
// and tokens rise. R54
func TestFiveClientsOfARedlock(t *testing.T) {
	servers := five(t)
	var (
		wg   sync.WaitGroup
		held sync.Mutex // seen from here, the lock is one too
		last recipes.Token
	)
	for range 5 {
		r := redlock(t, servers, long())
		wg.Go(func() {
			for range 5 {
				g, err := r.Lock(await.Context(t))
				if err != nil {
					t.Error(err)
					return
				}
				if !held.TryLock() {
					t.Error("two hold the lock")
					return
				}
				if g.Token() <= last {
					t.Errorf("token %v after %v", g.Token(), last)
				}
				last = g.Token()
				held.Unlock()
				if err := g.Release(await.Context(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// What would make a Redlock unsafe is refused where the servers' answers show it.
func TestServersNotFitForARedlock(t *testing.T) {
	servers := five(t)
	list := clients(t, servers)

	twice := slices.Clone(list)
	twice[4] = dial(t, link.New(t, servers[1].Addr()).Addr()) // by another address
	if _, err := tryRedlock(t, twice); !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), "servers 1 and 4 are the same") {
		t.Errorf("one server twice: %v", err)
	}

	servers[3].Do(t, "CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
	if _, err := tryRedlock(t, list); !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("a server that evicts: %v", err)
	}
	await.Release(t, had(t, redlockOf(t, list, fallback.AllowEviction(), fallback.CountRestarted())))
}

// A server that is down when the lock is made takes part when it is there.
func TestServerOfARedlockIsDownAtFirst(t *testing.T) {
	servers := five(t)
	servers[4].Kill(t)
	r := redlock(t, servers, long())
	g := had(t, r)
	await.Until(t, "the lock on four servers", func() bool { return holdings(t, servers[:4]) == 4 })
	await.Release(t, g)
	servers[4].Start(t)
	g = had(t, r)
	await.Until(t, "the lock on all servers", func() bool { return holdings(t, servers) == 5 })
	await.Release(t, g)
}

// unreachable is a way to a server that can't be reached.
func unreachable(t *testing.T) redis.UniversalClient {
	t.Helper()
	port, err := docker.FreePort("127.0.0.1")
	ok(t, err)
	return dial(t, "127.0.0.1:"+port)
}
