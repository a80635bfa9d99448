package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// on has a hook see the commands that a server gets, also those inside scripts.
func (s *five) on(i int, hook func(p *server.Peer, cmd string, args []string) (done bool)) {
	s.t.Helper()
	conn, err := s.mini[i].Dial() // starts it
	if err != nil {
		s.t.Fatal(err)
	}
	conn.Close()
	s.mini[i].Server().SetPreHook(func(p *server.Peer, cmd string, args ...string) bool { return hook(p, cmd, args) })
}

// later is a Lock under way.
func (s *five) later(p *party) *wait {
	return (&stage{t: s.t}).wait(p.Lock)
}

// A server says in whole seconds for how long it has been up, and may be up to one ahead.
// It counts when it has surely been up for a TTL. R53
func TestServerRestartedNearlyATTLAgo(t *testing.T) {
	quorumTest(t, func(s *five) {
		var mu sync.Mutex
		up := 10
		for i := range s.mini {
			s.on(i, func(p *server.Peer, cmd string, args []string) bool {
				mu.Lock()
				defer mu.Unlock()
				if cmd == "INFO" {
					p.WriteBulk(fmt.Sprintf("run_id:%d\r\nuptime_in_seconds:%d\r\n", i, up))
				}
				return cmd == "INFO"
			})
		}
		p := s.party(fallback.TTL(10 * time.Second))
		if g, err := p.TryLock(s.t.Context()); !errors.Is(err, fallback.ErrNoQuorum) {
			t.Errorf("maybe after 9.1s: %v, %v", g, err)
		}
		mu.Lock()
		up++
		mu.Unlock()
		s.release(s.lock(p))
	})
}

// A renewal is under way when trust ends, and its answers don't come: the grant ends in
// time all the same. R15, R20
func TestTrustEndsDuringARenewal(t *testing.T) {
	for ms := range 8 {
		limit := time.Duration(300+100*ms) * time.Millisecond
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			quorumTest(t, func(s *five) {
				a := s.party(fallback.TTL(10*time.Second), fallback.NodeTimeout(limit))
				g := s.lock(a)
				synctest.Wait()
				for i := range 3 {
					a.net[i].Cut()
				}
				left, since := g.Remaining(), time.Now()
				<-g.Done()
				if took := time.Since(since); took > left {
					t.Errorf("ended %v after the %v for which it was to be trusted", took-left, left)
				}
			})
		})
	}
}

// The answers took a while: trust counts from before the servers were asked, of a grant
// and of a renewal. R15, R52
func TestServersOfARedlockAreSlow(t *testing.T) {
	quorumTest(t, func(s *five) {
		const slow, ttl = 500 * time.Millisecond, 10 * time.Second
		a := s.party(fallback.TTL(ttl), fallback.NodeTimeout(time.Second))
		for _, n := range a.net {
			n.OnRequest(func() { time.Sleep(slow) })
		}
		g := s.lock(a)
		if left := g.Remaining(); left > ttl-slow {
			t.Errorf("%v remain of a grant that took %v", left, slow)
		}
		for range 2 { // the servers have to know the script
			if err := g.Verify(s.t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if left := g.Remaining(); left > ttl-slow || left < ttl-2*slow {
			t.Errorf("%v remain after a renewal that took %v", left, slow)
		}
		s.release(g)
	})
}

// A waiter waits for longer than the TTL. Its grant has all of it. R51
func TestWaitForARedlockDoesNotUseUpTheTTL(t *testing.T) {
	quorumTest(t, func(s *five) {
		a, b := s.party(), s.party()
		g := s.lock(a)
		w := s.later(b)
		time.Sleep(3 * fallback.DefaultTTL)
		s.release(g)
		h := w.grant()
		if left := h.Remaining(); left < fallback.DefaultTTL*9/10 {
			t.Errorf("%v remain of %v", left, fallback.DefaultTTL)
		}
		s.release(h)
	})
}

// A server is of no use, and of the others each of two parties is nearer to two: asking at the
// same time, neither has a majority. Both have the lock before long. R54
func TestVotesAreSplit(t *testing.T) {
	quorumTest(t, func(s *five) {
		a, b := s.party(), s.party()
		s.mini[2].Set("lockkeeper:{orders}:redlock", "data")
		far := func(p *party, servers ...int) {
			for _, i := range servers {
				p.net[i].OnRequest(func() { time.Sleep(5 * time.Millisecond) })
			}
		}
		far(a, 3, 4)
		far(b, 0, 1)
		for range 10 {
			first, second := s.later(a), s.later(b)
			for first.pending() && second.pending() {
				time.Sleep(time.Millisecond)
				if s.t.Failed() {
					return
				}
			}
			if !first.pending() {
				first, second = second, first
			}
			s.release(second.grant())
			s.release(first.grant())
		}
	})
}

// Two parties that began to ask at the same moment don't go on asking at the same
// moments: who has just given back half of the servers must not meet the other again. R54
func TestWaitersOfARedlockDoNotAskInStep(t *testing.T) {
	quorumTest(t, func(s *five) {
		g := s.lock(s.party())
		var mu sync.Mutex
		var asked [2]map[time.Time]bool
		var waits []*wait
		for i := range asked {
			asked[i] = map[time.Time]bool{}
			p := s.party()
			p.net[0].OnRequest(func() { mu.Lock(); defer mu.Unlock(); asked[i][time.Now()] = true })
			waits = append(waits, s.later(p))
		}
		time.Sleep(time.Minute)
		mu.Lock()
		both := 0
		for at := range asked[0] {
			if asked[1][at] {
				both++
			}
		}
		n := len(asked[0])
		mu.Unlock()
		if n < 100 || both > n/10 {
			t.Fatalf("of %d times, they asked %d times together", n, both)
		}
		s.release(g)
		first := waits[0]
		for first.pending() && waits[1].pending() {
			time.Sleep(time.Millisecond)
		}
		if !first.pending() {
			waits[0], waits[1] = waits[1], waits[0]
		}
		s.release(waits[1].grant())
		s.release(waits[0].grant())
	})
}

// Servers that refuse for good are as good as down: as long as the others are a majority,
// the lock is had, waited for and found busy.
func TestSomeServersOfARedlockRefuse(t *testing.T) {
	const foreign = "lockkeeper:{orders}:redlock"
	quorumTest(t, func(s *five) {
		a, b := s.party(), s.party()
		for _, m := range s.mini[:2] {
			m.Set(foreign, "data")
		}
		g := s.lock(a)
		if h, err := b.TryLock(s.t.Context()); !errors.Is(err, recipes.ErrBusy) {
			t.Errorf("TryLock while it is held: %v, %v", h, err)
		}
		w := s.later(b)
		time.Sleep(time.Minute)
		if !w.pending() {
			t.Fatalf("%v, %v", w.g, w.err)
		}
		s.release(g)
		s.release(w.grant())
		s.mini[2].Set(foreign, "data")
		if h, err := b.Lock(s.t.Context()); !errors.Is(err, recipes.ErrConflict) {
			t.Errorf("Lock: %v, %v", h, err)
		}
	})
}

// Most servers refuse the release, and those that don't answer last: the lock is not
// free, and the release says why.
func TestMostServersRefuseTheRelease(t *testing.T) {
	quorumTest(t, func(s *five) {
		a := s.party(fallback.FixedLease())
		g := s.lock(a)
		synctest.Wait()
		for i := range s.mini {
			if i >= 3 {
				a.net[i].OnRequest(func() { time.Sleep(10 * time.Millisecond) })
				continue
			}
			s.on(i, func(p *server.Peer, cmd string, args []string) bool {
				if cmd == "EVALSHA" || cmd == "EVAL" {
					p.WriteError("NOPERM for a test")
					return true
				}
				return false
			})
		}
		if err := g.Release(s.t.Context()); !errors.Is(err, recipes.ErrPermission) {
			t.Errorf("release: %v, want ErrPermission", err)
		}
		for i := range s.mini[:3] {
			s.on(i, func(*server.Peer, string, []string) bool { return false })
		}
		time.Sleep(fallback.DefaultTTL)
	})
}

// Four of five servers have forgotten the lock, and the one that has not answers first: a
// loss is not silent for that.
func TestReleaseOfARedlockThatMostServersForgot(t *testing.T) {
	quorumTest(t, func(s *five) {
		a := s.party()
		g := s.lock(a)
		synctest.Wait()
		for i := range 4 {
			s.mini[i].FlushAll()
			if i >= 2 {
				a.net[i].OnRequest(func() { time.Sleep(10 * time.Millisecond) })
			}
		}
		if err := g.Release(s.t.Context()); !errors.Is(err, recipes.ErrRevoked) || !errors.Is(err, recipes.ErrNodeDeleted) {
			t.Errorf("release: %v", err)
		}
	})
}

// Two servers have forgotten the lock and one hangs, so that it can't be known whether
// it was lost: the release waits for no more than an answer may take.
func TestReleaseOfARedlockInDoubt(t *testing.T) {
	quorumTest(t, func(s *five) {
		a := s.party()
		g := s.lock(a)
		synctest.Wait()
		s.mini[0].FlushAll()
		s.mini[1].FlushAll()
		a.net[4].Cut()
		began := time.Now()
		s.release(g)
		if took := time.Since(began); took > fallback.DefaultNodeTimeout {
			t.Errorf("took %v", took)
		}
		a.net[4].Heal()
		time.Sleep(time.Minute)
		if n := s.locked(); n != 0 {
			t.Errorf("left on %d servers", n)
		}
	})
}

// A lock is held for its MaxHold, and renewed until then. Then it is revoked, once, and
// given back: the next has it at once, and nothing is renewed any more. R22
func TestMaxHold(t *testing.T) {
	const held = 5 * fallback.DefaultTTL
	type acquire = func(context.Context) (*recipes.Grant, error)
	test := func(t *testing.T, own, rival acquire, told chan recipes.Revocation, scripts func() int) {
		s := &stage{t: t}
		began := time.Now()
		g := s.get(own)
		next := s.wait(rival)
		<-g.Done()
		if took := time.Since(began); took != held {
			t.Errorf("held for %v", took)
		}
		s.ends(g, recipes.ErrHeldTooLong)
		if r := <-told; r.Token != g.Token() || !errors.Is(r.Cause, recipes.ErrHeldTooLong) {
			t.Errorf("told of %+v", r)
		}
		h := next.grant()
		if took := next.at.Sub(began); took > held+time.Second {
			t.Errorf("the next was granted %v after the end", took-held)
		}
		if err := g.Release(t.Context()); !errors.Is(err, recipes.ErrRevoked) {
			t.Errorf("late release: %v", err)
		}
		before := scripts()
		time.Sleep(held)
		if n := scripts() - before; n > 0 {
			t.Errorf("%d scripts after the end", n)
		}
		s.stands(h)
		s.release(h)
		if len(told) > 0 {
			t.Errorf("told again of %+v", <-told)
		}
	}
	for name, lock := range map[string]func(s *stage, p player, opts ...recipes.Option) acquire{
		"Mutex": func(s *stage, p player, opts ...recipes.Option) acquire {
			return must(fallback.NewMutex(p.Client, "x", opts...)).Lock
		},
		"Fair":      func(s *stage, p player, opts ...recipes.Option) acquire { return s.fair(p, opts...).Lock },
		"Write":     func(s *stage, p player, opts ...recipes.Option) acquire { return s.rwlock(p, opts...).Lock },
		"Semaphore": func(s *stage, p player, opts ...recipes.Option) acquire { return s.semaphore(p, 1, opts...).Acquire },
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				told := make(chan recipes.Revocation, 10)
				p := s.player()
				own := lock(s, p, recipes.MaxHold(held), recipes.OnRevoke(func(r recipes.Revocation) { told <- r }))
				test(t, own, lock(s, s.player()), told, p.w.count)
			})
		})
	}
	t.Run("Redlock", func(t *testing.T) {
		quorumTest(t, func(s *five) {
			told := make(chan recipes.Revocation, 10)
			a, b := s.party(recipes.MaxHold(held), recipes.OnRevoke(func(r recipes.Revocation) { told <- r })), s.party()
			var mu sync.Mutex
			scripts := 0
			for _, n := range a.net {
				n.OnRequest(func() { mu.Lock(); defer mu.Unlock(); scripts++ })
			}
			test(s.t, a.Lock, b.Lock, told, func() int { mu.Lock(); defer mu.Unlock(); return scripts })
		})
	})
	t.Run("OfOneClient", func(t *testing.T) { // each has its own, and none passes it on
		onStage(t, func(t *testing.T, s *stage) {
			p := s.player()
			m := must(fallback.NewMutex(p.Client, "x", recipes.MaxHold(held/1000), recipes.LockDelay(time.Minute)))
			g := s.get(m.Lock)
			next := s.wait(m.Lock)
			<-g.Done()
			ended := time.Now()
			h := next.grant()
			if delay := next.at.Sub(ended); delay < time.Minute {
				t.Errorf("passed on after %v, want the LockDelay", delay)
			}
			s.stands(h)
			if h.Token() <= g.Token() {
				t.Errorf("token %v after %v", h.Token(), g.Token())
			}
			<-h.Done()
			if took := time.Since(next.at); took != held/1000 {
				t.Errorf("held for %v", took)
			}
			s.ends(h, recipes.ErrHeldTooLong)
		})
	})
}
