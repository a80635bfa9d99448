package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/internal/redisconformance"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// five are the servers of a Redlock, on virtual time.
type five struct {
	t    *testing.T
	mini [5]*miniredis.Miniredis
}

func quorumTest(t *testing.T, f func(s *five)) {
	synctest.Test(t, func(t *testing.T) {
		s := &five{t: t}
		for i := range s.mini {
			s.mini[i] = miniredis.NewMiniRedis()
			s.mini[i].ClockTTL(true)
			t.Cleanup(s.mini[i].Close)
		}
		f(s)
	})
}

// A party is one program: its own way to each server.
type party struct {
	*fallback.Redlock
	net [5]*redisconformance.Network
}

func (s *five) party(opts ...recipes.Option) *party {
	s.t.Helper()
	p := &party{}
	var servers []redis.UniversalClient
	for i, mini := range s.mini {
		p.net[i] = redisconformance.NewNetwork()
		rdb := redisconformance.ConnectTo(fmt.Sprintf("127.0.0.%d:6379", i+1), p.net[i].Dial(mini.Dial))
		s.t.Cleanup(func() { rdb.Close(); p.net[i].End() })
		servers = append(servers, rdb)
	}
	var err error
	if p.Redlock, err = fallback.NewRedlock(servers, "orders", opts...); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		for _, n := range p.net {
			n.Heal()
		}
		if err := p.Close(); err != nil {
			s.t.Errorf("close: %v", err)
		}
	})
	return p
}

// locked returns on how many servers somebody has the key.
func (s *five) locked() (n int) {
	synctest.Wait()
	for _, m := range s.mini {
		if m.Exists("lockkeeper:{orders}:redlock") {
			n++
		}
	}
	return n
}

func (s *five) lock(p *party) *recipes.Grant {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	g, err := p.Lock(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	return g
}

func (s *five) release(g *recipes.Grant) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := g.Release(ctx); err != nil {
		s.t.Errorf("release: %v", err)
	}
}

func TestRedlockIsHeldByOne(t *testing.T) {
	quorumTest(t, func(s *five) {
		a, b := s.party(), s.party(recipes.Owner("b"))
		g := s.lock(a)
		if n := s.locked(); n != 5 {
			t.Errorf("on %d servers, want 5", n)
		}
		if _, err := b.TryLock(s.t.Context()); !errors.Is(err, recipes.ErrBusy) {
			t.Errorf("TryLock while it is held: %v", err)
		}
		if list, err := b.Contenders(s.t.Context()); err != nil || len(list) != 1 || list[0].Token != g.Token() || list[0].Mine {
			t.Errorf("contenders %+v, %v; want the holder with token %v", list, err, g.Token())
		}
		s.release(g)
		if n := s.locked(); n != 0 {
			t.Errorf("left on %d servers", n)
		}
		h := s.lock(b)
		if h.Token() <= g.Token() {
			t.Errorf("token %v after %v", h.Token(), g.Token())
		}
		s.release(h)
	})
}

// The clocks of the servers differ: the largest token of any is passed on.
func TestTokensOfServersWhoseClocksDiffer(t *testing.T) {
	quorumTest(t, func(s *five) {
		s.mini[0].SetTime(time.Now().Add(time.Hour))
		a, b := s.party(), s.party()
		g := s.lock(a)
		s.release(g)
		synctest.Wait()
		b.net[0].Cut() // the one that is ahead
		h := s.lock(b)
		if h.Token() <= g.Token() {
			t.Errorf("token %v after %v", h.Token(), g.Token())
		}
		s.release(h)
	})
}

// R49, R50: a server that hangs costs nobody any time, and nothing is left on it, long
// before it would go by itself.
func TestServerOfFiveHangs(t *testing.T) {
	quorumTest(t, func(s *five) {
		a := s.party(fallback.TTL(time.Hour))
		a.net[2].Cut()
		began := time.Now()
		for range 20 {
			s.release(s.lock(a))
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("20 locks took %v beside the answers of the others", took)
		}
		a.net[2].Heal()
		time.Sleep(time.Minute)
		if n := s.locked(); n != 0 {
			t.Errorf("left on %d servers", n)
		}
	})
}

// R49: who has not got enough gives back what it has.
func TestQuorumMissed(t *testing.T) {
	quorumTest(t, func(s *five) {
		a, b := s.party(), s.party()
		for i := range 2 {
			b.net[i].Cut()
		}
		g := s.lock(b) // on three
		if n := s.locked(); n != 3 {
			t.Fatalf("on %d servers, want 3", n)
		}
		if _, err := a.TryLock(s.t.Context()); !errors.Is(err, recipes.ErrBusy) {
			t.Errorf("TryLock: %v", err)
		}
		if n := s.locked(); n != 3 {
			t.Errorf("on %d servers after it was missed, want the 3 of the holder", n)
		}
		s.release(g)
	})
}

// R49, R50: nor does what it gives back wait for a server that hangs.
func TestQuorumMissedWhileAServerHangs(t *testing.T) {
	quorumTest(t, func(s *five) {
		a, b := s.party(fallback.NodeTimeout(fallback.MaxNodeTimeout), fallback.TTL(time.Hour)), s.party()
		a.net[2].Cut()
		b.net[2].Cut()
		b.net[4].Cut()
		g := s.lock(b)
		if _, err := a.TryLock(s.t.Context()); !errors.Is(err, recipes.ErrBusy) {
			t.Errorf("TryLock: %v", err)
		}
		time.Sleep(fallback.MaxNodeTimeout / 5)
		if n := s.locked(); n != 3 {
			t.Errorf("on %d servers, want the 3 of the holder", n)
		}
		a.net[2].Heal()
		s.release(g)
	})
}

// R52, R10: the answers come too late to be of use, which is not the same as busy.
func TestAnswersOfAllServersComeTooLate(t *testing.T) {
	quorumTest(t, func(s *five) {
		a := s.party(fallback.TTL(time.Second))
		for _, n := range a.net {
			n.OnRequest(func() { time.Sleep(600 * time.Millisecond) })
		}
		if _, err := a.TryLock(s.t.Context()); !errors.Is(err, fallback.ErrNoQuorum) {
			t.Errorf("TryLock: %v", err)
		}
		for _, n := range a.net {
			n.OnRequest(nil)
		}
		time.Sleep(10 * time.Second)
		if n := s.locked(); n != 0 {
			t.Errorf("left on %d servers", n)
		}
	})
}

// Cut off from most servers, trust ends before they give the lock to another.
func TestHolderCutOffFromMostServers(t *testing.T) {
	quorumTest(t, func(s *five) {
		told := make(chan recipes.Revocation, 2)
		a, b := s.party(recipes.OnRevoke(func(r recipes.Revocation) { told <- r })), s.party()
		g := s.lock(a)
		time.Sleep(time.Duration(rand.N(20_000)) * time.Millisecond)
		for i := range 3 {
			a.net[i].Cut()
		}
		h := s.lock(b)
		select {
		case <-g.Done():
		default:
			t.Error("granted to another before the first knew that it was over")
		}
		if !errors.Is(g.Err(), recipes.ErrSessionLost) {
			t.Errorf("ended by %v", g.Err())
		}
		if r := <-told; r.Token != g.Token() || len(told) > 0 {
			t.Errorf("told of %v, and %d more", r.Token, len(told))
		}
		s.release(h)
	})
}

// Two servers of five don't matter, however long.
func TestHolderCutOffFromTwoServers(t *testing.T) {
	quorumTest(t, func(s *five) {
		a := s.party()
		g := s.lock(a)
		a.net[1].Cut()
		a.net[4].Cut()
		time.Sleep(time.Hour)
		if err := g.Err(); err != nil {
			t.Errorf("ended by %v", err)
		}
		s.release(g)
	})
}

func TestKeyRemovedFromMostServers(t *testing.T) {
	quorumTest(t, func(s *five) {
		a := s.party()
		g := s.lock(a)
		s.locked() // on all of them
		s.mini[0].FlushAll()
		s.mini[1].FlushAll()
		time.Sleep(time.Minute)
		if err := g.Err(); err != nil {
			t.Fatalf("ended by %v", err)
		}
		s.mini[2].FlushAll()
		if err := g.Verify(s.t.Context()); !errors.Is(err, recipes.ErrRevoked) || !errors.Is(err, recipes.ErrNodeDeleted) {
			t.Errorf("Verify: %v", err)
		}
		if n := s.locked(); n != 0 {
			t.Errorf("left on %d servers", n)
		}
	})
}

func TestLeaseOfARedlockEnds(t *testing.T) {
	quorumTest(t, func(s *five) {
		a := s.party(fallback.FixedLease(), fallback.TTL(2*time.Second))
		g := s.lock(a)
		began := time.Now()
		<-g.Done()
		if took := time.Since(began); took > 2*time.Second || took < 1900*time.Millisecond {
			t.Errorf("held for %v", took)
		}
		if err := g.Release(s.t.Context()); !errors.Is(err, recipes.ErrRevoked) {
			t.Errorf("release: %v", err)
		}
	})
}

// Something else under the key is left alone.
func TestKeyOfARedlockIsSomethingElse(t *testing.T) {
	quorumTest(t, func(s *five) {
		for _, m := range s.mini {
			m.Set("lockkeeper:{orders}:redlock", "data")
		}
		if _, err := s.party().Lock(s.t.Context()); !errors.Is(err, recipes.ErrConflict) || !strings.Contains(err.Error(), "lockkeeper:{orders}:redlock") {
			t.Errorf("Lock: %v", err)
		}
		synctest.Wait()
		for i, m := range s.mini {
			if v, _ := m.Get("lockkeeper:{orders}:redlock"); v != "data" {
				t.Errorf("server %d has %q", i, v)
			}
		}
	})
}

// R54, and everything else: parties compete while servers come and go. No two hold, tokens
// rise, everybody gets the lock, and nothing is left.
func TestRedlockUnderFaults(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			quorumTest(t, func(s *five) { underFaults(s, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func underFaults(s *five, rng *rand.Rand) {
	var mu sync.Mutex
	var last *recipes.Grant
	saw := func(g *recipes.Grant) {
		mu.Lock()
		defer mu.Unlock()
		if last != nil {
			select {
			case <-last.Done():
			default:
				s.t.Errorf("grant %v while grant %v is held", g.Token(), last.Token())
			}
			if g.Token() <= last.Token() {
				s.t.Errorf("token %v after %v", g.Token(), last.Token())
			}
		}
		last = g
	}
	ctx, stop := context.WithCancel(s.t.Context())
	var parties []*party
	counts := make([]int, 5)
	var wg sync.WaitGroup
	for i := range counts {
		p := s.party(fallback.TTL(2 * time.Second))
		parties = append(parties, p)
		pause := rand.New(rand.NewPCG(rng.Uint64(), 1))
		wg.Go(func() {
			for ctx.Err() == nil {
				g, err := p.Lock(ctx)
				if err != nil {
					continue
				}
				saw(g)
				counts[i]++
				select {
				case <-time.After(time.Duration(pause.IntN(3000)) * time.Millisecond):
				case <-g.Done():
				}
				g.Release(context.Background())
				time.Sleep(time.Duration(pause.IntN(1000)) * time.Millisecond) // or nobody else would get it
			}
		})
	}
	for range 20 {
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
		n := parties[rng.IntN(5)].net[rng.IntN(5)]
		switch rng.IntN(3) {
		case 0:
			n.Cut()
		default:
			for _, p := range parties {
				p.net[rng.IntN(5)].Heal()
			}
		}
	}
	for _, p := range parties {
		for _, n := range p.net {
			n.Heal()
		}
	}
	time.Sleep(30 * time.Second)
	stop()
	wg.Wait()
	time.Sleep(time.Minute)
	for i, n := range counts {
		if n == 0 {
			s.t.Errorf("party %d never had the lock: %v", i, counts)
		}
	}
	if n := s.locked(); n != 0 {
		s.t.Errorf("left on %d servers", n)
	}
}

func TestRedlockOfBadInput(t *testing.T) {
	at := func(addr string) redis.UniversalClient {
		c := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { c.Close() })
		return c
	}
	a, b, c, d := at("127.0.0.1:1"), at("127.0.0.1:2"), at("127.0.0.1:3"), at("127.0.0.1:4")
	for name, test := range map[string]struct {
		servers []redis.UniversalClient
		key     string
		opts    []recipes.Option
		says    string
	}{
		"no servers":       {nil, "k", nil, "an odd number from 3 to 15"},
		"one server":       {[]redis.UniversalClient{a}, "k", nil, "an odd number"},
		"four servers":     {[]redis.UniversalClient{a, b, c, d}, "k", nil, "4 servers: want an odd number"},
		"a nil server":     {[]redis.UniversalClient{a, b, nil}, "k", nil, "server 2 is nil"},
		"one client twice": {[]redis.UniversalClient{a, b, a}, "k", nil, "servers 0 and 2 are the same"},
		"one server twice": {[]redis.UniversalClient{a, b, at("127.0.0.1:2")}, "k", nil, "servers 1 and 2 are the same"},
		"empty key":        {[]redis.UniversalClient{a, b, c}, "", nil, "want 1 to 1024 bytes"},
		"long key":         {[]redis.UniversalClient{a, b, c}, strings.Repeat("k", 1025), nil, "want 1 to 1024 bytes"},
		"TTL of nothing":   {[]redis.UniversalClient{a, b, c}, "k", []recipes.Option{fallback.TTL(0)}, "TTL(0s)"},
		"lock delay":       {[]redis.UniversalClient{a, b, c}, "k", []recipes.Option{recipes.LockDelay(time.Second)}, "LockDelay is not for"},
		"replicas":         {[]redis.UniversalClient{a, b, c}, "k", []recipes.Option{fallback.WaitReplicas(1, time.Second)}, "WaitReplicas is not for"},
		"limit of nothing": {[]redis.UniversalClient{a, b, c}, "k", []recipes.Option{fallback.NodeTimeout(0)}, "NodeTimeout(0s)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fallback.NewRedlock(test.servers, test.key, test.opts...)
			if !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want ErrInvalid and %q", err, test.says)
			}
		})
	}
}
