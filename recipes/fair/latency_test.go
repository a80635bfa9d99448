package fair_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// far returns locks of as many sessions, whose server is going to be a round trip of
// that length away.
func far(t *testing.T, n int, roundTrip time.Duration, opts func(i int) []recipes.Option) []*fair.Lock {
	locks, srv := near(t, n, opts)
	srv.Delay(roundTrip)
	t.Cleanup(func() { srv.Delay(0) })
	return locks
}

func near(t *testing.T, n int, opts func(i int) []recipes.Option) ([]*fair.Lock, *zktest.Server) {
	srv := zktest.Start(t, zktest.InMemory(), zktest.AllowOpenSessions())
	var locks []*fair.Lock
	for i := range n {
		s, err := session.Open(t.Context(), session.Config{Servers: []string{srv.Addr()}, Dial: srv.Dial})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		l, err := fair.New(s, "/lock", opts(i)...)
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, l)
	}
	return locks, srv
}

// handOver returns how long the lock takes from one contender to the next, in a line
// of 16 over 4 sessions.
func handOver(t *testing.T, roundTrip, hold time.Duration, opts ...recipes.Option) (took time.Duration) {
	const sessions, waiters = 4, 16
	synctest.Test(t, func(t *testing.T) {
		locks := far(t, sessions, roundTrip, func(int) []recipes.Option { return opts })
		first, err := locks[0].Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var tickets []*fair.Ticket
		for i := range waiters {
			ticket, err := locks[i%sessions].Join(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tickets = append(tickets, ticket)
		}
		time.Sleep(10 * roundTrip) // they wait where they have to
		start := time.Now()
		first.Release(context.Background())
		var wg sync.WaitGroup
		var last atomic.Int64
		for _, ticket := range tickets {
			wg.Go(func() {
				g, err := ticket.Wait(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				last.Store(int64(time.Since(start)))
				time.Sleep(hold)
				g.Release(context.Background())
			})
		}
		wg.Wait()
		took = (time.Duration(last.Load()) - hold*(waiters-1)) / waiters
	})
	return took
}

// The next of a busy flow is in line when the lock is released, if that was held
// for more than two round trips; if it was not held at all, a hand-over takes one
// more.
func TestOneBusyFlowHandsOverAsFastAsPlainFIFO(t *testing.T) {
	const roundTrip = 10 * time.Millisecond
	const little = roundTrip / 4 // the first and the last of a line differ
	flow := fair.Flow("busy", 1)
	for _, hold := range []time.Duration{5 * roundTrip / 2, 4 * roundTrip, 10 * roundTrip} {
		plain, busy := handOver(t, roundTrip, hold), handOver(t, roundTrip, hold, flow)
		if busy > plain+little {
			t.Errorf("held for %v: %v in a flow, %v without", hold, busy, plain)
		}
	}
	if plain, busy := handOver(t, roundTrip, 0), handOver(t, roundTrip, 0, flow); busy > plain+roundTrip+little {
		t.Errorf("not held at all: %v in a flow, %v without", busy, plain)
	}
}

// The next of a flow is on its way to the line when a round begins, where a round trip
// takes as long as many a hold: that must not cost the flow what it lags behind.
func TestHoldTimeIsSharedWhereTheServerIsFar(t *testing.T) {
	const flows, requesters, grants = 8, 4, 1200
	hold := func(flow int) time.Duration {
		if flow == 0 {
			return 20 * time.Millisecond
		}
		return 2 * time.Millisecond
	}
	synctest.Test(t, func(t *testing.T) {
		locks := far(t, flows, 2*time.Millisecond, func(i int) []recipes.Option {
			return []recipes.Option{fair.Flow(fmt.Sprint(i), 1), fair.ByHoldTime()}
		})
		var (
			mu    sync.Mutex // the lock would do, but for the race detector
			held  [flows]time.Duration
			count int
			wg    sync.WaitGroup
		)
		ctx, enough := context.WithCancel(t.Context())
		defer enough()
		for i, l := range locks {
			for range requesters {
				wg.Go(func() {
					for {
						g, err := l.Lock(ctx)
						if ctx.Err() != nil {
							if g != nil {
								g.Release(context.Background())
							}
							return
						}
						if err != nil {
							t.Error(err)
							return
						}
						time.Sleep(hold(i))
						mu.Lock()
						held[i] += hold(i)
						if count++; count == grants {
							enough()
						}
						mu.Unlock()
						g.Release(context.Background())
					}
				})
			}
		}
		wg.Wait()
		for i := range held {
			for k := range held {
				if ahead := held[i] - held[k]; ahead > 4*hold(i) {
					t.Errorf("flow %d held for %v and flow %d for %v: ahead by more than four of its holdings", i, held[i], k, held[k])
				}
			}
		}
		t.Log(held)
	})
}

// The lock's node, with the record of all, is removed before those of the flows, when
// nobody has used them for a while: that is not waited for here. What a flow had used until then is no debt.
func TestAccountsOfAnEarlierDirectoryDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks, srv := near(t, 2, func(i int) []recipes.Option {
			return []recipes.Option{fair.Flow(fmt.Sprint(i), 1), fair.ByHoldTime()}
		})
		old, young := locks[0], locks[1]
		for range 8 {
			g, err := old.Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			g.Release(t.Context())
		}
		if err := srv.DeleteAll("/lock"); err != nil {
			t.Fatal(err)
		}
		var grants atomic.Int64
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for {
					g, err := young.Lock(ctx)
					if err != nil {
						return
					}
					time.Sleep(time.Second)
					grants.Add(1)
					g.Release(context.Background())
				}
			})
		}
		time.Sleep(5 * time.Second)
		before := grants.Load()
		g, err := old.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if waited := grants.Load() - before; waited > 3 {
			t.Errorf("waited for %d grants of a flow that began anew, too", waited)
		}
		stop()
		g.Release(context.Background())
		wg.Wait()
	})
}
