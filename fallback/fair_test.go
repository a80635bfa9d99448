package fallback_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/internal/redisconformance"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// patient is for how long the waiters of these tests are believed to live.
const patient = 2 * time.Second

// Ten waiters of one process die, just before the holder releases or long before. The
// next that lives comes in within one WaiterTimeout, not ten. R36
func TestDeadWaitersCostOneTimeout(t *testing.T) {
	for _, before := range []time.Duration{0, patient / 2, time.Minute} {
		onStage(t, func(t *testing.T, s *stage) {
			live := fallback.WaiterTimeout(patient)
			holder, dead := s.player(live), s.player(live)
			g := s.get(s.fair(holder).Lock)
			for range 10 {
				s.wait(s.fair(dead).Lock)
			}
			next := s.wait(s.fair(s.player(live)).Lock)
			time.Sleep(time.Minute)
			if list := must(s.fair(holder).Contenders(t.Context())); len(list) != 12 {
				t.Fatalf("%d in line, want 12: those who wait say that they live", len(list))
			}
			dead.w.die()
			time.Sleep(before)
			released := time.Now()
			s.release(g)
			next.grant()
			if d := next.at.Sub(released); d > patient+100*time.Millisecond {
				t.Errorf("in after %v, which is more than one WaiterTimeout of %v", d, patient)
			}
			if before > patient && next.at != released {
				t.Errorf("in after %v, and the dead were known to be", next.at.Sub(released))
			}
			s.release(next.g)
		})
	}
}

// Three processes try for short times, again and again, while the holder stays. What is
// believed of the waiters never goes beyond one WaiterTimeout. R37
func TestShortWaitsDoNotAddUp(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		live := fallback.WaiterTimeout(patient)
		g := s.get(s.fair(s.player(live), fallback.TTL(30*time.Second)).Lock)
		var wg sync.WaitGroup
		for range 3 {
			l := s.fair(s.player(live), fallback.TTL(30*time.Second))
			wg.Go(func() {
				for range 100 {
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
					if g, err := l.Lock(ctx); g != nil || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v, %v", g, err)
					}
					cancel()
				}
			})
		}
		for range 200 {
			time.Sleep(230 * time.Millisecond)
			now := float64(time.Now().UnixMilli())
			for _, z := range s.admin.ZRangeWithScores(t.Context(), keyed("mutex-alive"), 0, -1).Val() {
				if id := z.Member.(string); !strings.HasPrefix(id, "x") && z.Score > now+float64(patient.Milliseconds()) {
					t.Fatalf("believed for %v ms", z.Score-now)
				}
			}
			if n := s.admin.ZCard(t.Context(), keyed("mutex-queue")).Val(); n > 6 { // each may be leaving and coming at a time
				t.Fatalf("%d in line, of 3 at a time", n)
			}
		}
		wg.Wait()
		s.release(g)
		s.left()
	})
}

// A waiter gives up, and what it sends to leave is lost. Its place is gone within one
// WaiterTimeout, and holds nobody up for longer. R39
func TestLeavingIsLost(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		live := fallback.WaiterTimeout(patient)
		g := s.get(s.fair(s.player(live)).Lock)
		p := s.player(live)
		gone := s.wait(s.fair(p).Lock)
		next := s.wait(s.fair(s.player(live)).Lock)
		p.w.die()
		at := time.Now()
		gone.cancel()
		<-gone.done
		if !errors.Is(gone.err, context.Canceled) || gone.at != at {
			t.Errorf("%v, after %v", gone.err, gone.at.Sub(at))
		}
		s.release(g)
		next.grant()
		if d := next.at.Sub(at); d > patient+100*time.Millisecond {
			t.Errorf("the next is in after %v", d)
		}
		s.release(next.g)
	})
}

// Somebody removes the lock while five wait. The first is in within a second, in their
// order, and the release of what is lost says so and does no harm. R40
func TestLockIsRemovedWhileOthersWait(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		g := s.get(s.fair(s.player(), fallback.TTL(time.Hour)).Lock)
		var waits []*wait
		for range 5 {
			waits = append(waits, s.wait(s.fair(s.player()).Lock))
		}
		s.srv.Del(keyed("lock"))
		removed := time.Now()
		waits[0].grant()
		if d := waits[0].at.Sub(removed); d > time.Second {
			t.Errorf("in after %v", d)
		}
		if err := g.Release(t.Context()); !errors.Is(err, recipes.ErrRevoked) {
			t.Errorf("the release of a lost lock: %v", err)
		}
		s.stands(waits[0].g)
		for i, w := range waits {
			for _, later := range waits[i+1:] {
				if !later.pending() {
					t.Fatal("out of order")
				}
			}
			s.release(w.grant())
		}
		s.left()
	})
}

// The lock is gone, or its holder, and others wait: who tries does not pass them, and
// lets them in rather. R42
func TestTryDoesNotPassAWaiter(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.get(s.fair(s.player(), fallback.TTL(time.Hour)).Lock)
		first := s.wait(s.fair(s.player()).Lock)
		other := s.fair(s.player())
		s.srv.Del(keyed("lock"))
		at := time.Now()
		s.fails(other.TryLock, recipes.ErrBusy)
		first.grant()
		if first.at != at {
			t.Errorf("let in %v later", first.at.Sub(at))
		}
	})
}

// Somebody has made the lock last for ever. Those who wait look again from time to time,
// neither never nor all the time. R42
func TestLockWithoutTimeToLive(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		p := s.player()
		g := s.get(s.fair(s.player(), fallback.FixedLease(), fallback.TTL(time.Hour)).Lock)
		w := s.wait(s.fair(p).Lock)
		s.admin.Persist(t.Context(), keyed("lock"))
		time.Sleep(10 * time.Second) // a waiter that was told a time keeps to it
		before := p.w.count()
		time.Sleep(time.Minute)
		if n := p.w.count() - before; n < 20 || n > 120 {
			t.Errorf("%d requests in a minute, want about one a second", n)
		}
		s.release(g)
		s.release(w.grant())
	})
}

// No request carries a time of day, so no client's clock has a part in who comes first
// or who lives: order and life are the server's to know. R41
func TestNoClientTellsTheTime(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		rdb := redisconformance.Connect(s.srv.Dial)
		hook := &eavesdropper{}
		rdb.AddHook(hook)
		defer rdb.Close()
		p := player{must(fallback.New(rdb, fallback.Realm("stage"))), &wire{}}
		defer p.Close()
		other := s.player()
		for _, acquires := range [][2]acquire{
			{s.fair(p).Lock, s.fair(other).Lock},
			{s.rwlock(p).Lock, s.rwlock(other).Lock},
			{s.rwlock(p).RLock, s.rwlock(other).Lock},
			{s.semaphore(p, 1).Acquire, s.semaphore(other, 1).Acquire},
		} {
			g := s.get(acquires[1])
			w := s.wait(acquires[0])
			time.Sleep(time.Minute)
			s.release(g)
			w.grant()
			time.Sleep(time.Minute)
			s.release(w.g)
		}
		now := float64(time.Now().Unix())
		for _, arg := range hook.heard() {
			for f := range strings.FieldsSeq(arg) {
				n, err := strconv.ParseFloat(f, 64)
				for _, unit := range []float64{1, 1e3, 1e6, 1e9} {
					if err == nil && n/unit > now-86400 && n/unit < now+86400 {
						t.Fatalf("a client says %q, which is a time of day", arg)
					}
				}
			}
		}
	})
}

// An eavesdropper hears all arguments of scripts.
type eavesdropper struct {
	mu   sync.Mutex
	args []string
}

func (e *eavesdropper) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.args
}

func (e *eavesdropper) hear(cmd redis.Cmder) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if strings.HasPrefix(cmd.Name(), "eval") {
		for _, arg := range cmd.Args()[2:] {
			switch arg := arg.(type) {
			case string:
				e.args = append(e.args, arg)
			case int64:
				e.args = append(e.args, strconv.FormatInt(arg, 10))
			case int:
				e.args = append(e.args, strconv.Itoa(arg))
			}
		}
	}
}

func (e *eavesdropper) DialHook(next redis.DialHook) redis.DialHook { return next }

func (e *eavesdropper) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		e.hear(cmd)
		return next(ctx, cmd)
	}
}

func (e *eavesdropper) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			e.hear(cmd)
		}
		return next(ctx, cmds)
	}
}

// A Fair and a Mutex with the same key are the same lock.
func TestFairAndMutexExcludeEachOther(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		p := s.player(fallback.Passes(3)) // which is for mutexes
		fair, mutex := s.fair(p), must(fallback.NewMutex(p.Client, "x"))
		g := s.get(fair.Lock)
		s.fails(mutex.TryLock, recipes.ErrBusy)
		s.fails(func(ctx context.Context) (*recipes.Grant, error) { return mutex.Lock(g.Context(ctx)) }, recipes.ErrDeadlock)
		s.release(g)
		g = s.get(mutex.Lock)
		s.fails(fair.TryLock, recipes.ErrBusy)
		s.release(g)
		if _, err := fallback.NewFair(p.Client, "x", fallback.Passes(3)); !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("Passes of a fair lock: %v", err)
		}
		s.left()
	})
}

// A hand-over takes the command of the release and no other, however many wait.
func TestHandOverOfFairTakesOneCommandMore(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		var players []player
		var waits []*wait
		for range 10 {
			p := s.player()
			players = append(players, p)
			waits = append(waits, s.wait(s.fair(p).Lock))
		}
		count := func() (n int) {
			for _, p := range players {
				n += p.w.count()
			}
			return n
		}
		before, at := count(), time.Now()
		for _, w := range waits {
			s.release(w.grant())
		}
		if n := count() - before; n != len(waits) || !at.Equal(time.Now()) {
			t.Errorf("%d commands for %d releases, in %v", n, len(waits), time.Since(at))
		}
	})
}
