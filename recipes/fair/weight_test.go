package fair_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// Under constant backlog the lock goes round the flows by their weights, exactly.
func TestSharesAreAsTheWeights(t *testing.T) {
	for _, weights := range [][]int{{1, 2, 3, 4}, {1, 1}, {5, 1}, {1, 1, 1, 1, 1, 1, 1, 1}, {2, 3}} {
		t.Run(fmt.Sprint(weights), func(t *testing.T) {
			t.Parallel()
			run(t, func(e env) {
				const grants = 500
				var tenants []tenant
				sum := 0
				for i, w := range weights {
					// Very unequal demand, and one holds ten times longer.
					tenants = append(tenants, tenant{w, []time.Duration{50, 5}[min(i, 1)] * time.Millisecond, w + 3 + 5*i, nil})
					sum += w
				}
				c := e.share(tenants, grants, 1)
				for i, w := range weights {
					if off := c.grants[i]*sum - grants*w; off > w*sum || off < -w*sum { // by one round
						t.Errorf("weights %v: grants %v", weights, c.grants)
					}
				}
			})
		})
	}
}

// A tenant that comes now and then waits for two grants at most, however many another
// has in its queue: at whatever moment it comes, also at that of a release.
func TestTenantWithManyRequests(t *testing.T) {
	run(t, func(e env) {
		many, few := e.lock(fair.Flow("many", 1)), e.lock(fair.Flow("few", 1))
		const n = 300
		done := make(chan struct{})
		var grants atomic.Int64
		go func() {
			defer close(done)
			var tickets []*fair.Ticket
			for range n {
				tickets = append(tickets, e.join(many))
			}
			for _, x := range tickets {
				g := e.Start(x.Wait).Grant(time.Minute)
				time.Sleep(10 * time.Millisecond)
				e.Release(g)
				grants.Add(1)
			}
		}()
		time.Sleep(time.Second)
		for i := range 5 {
			x := e.joined(few) // from then on it counts
			had := grants.Load()
			g := e.Start(x.Wait).Grant(time.Minute)
			if n := grants.Load() - had; n > 2 {
				t.Errorf("waited for %d grants", n)
			}
			e.Release(g)
			time.Sleep(time.Duration(150+5*(i%2)) * time.Millisecond)
		}
		<-done
		e.empty()
	})
}

// Clients give one flow different weights: the newest request's counts, also for who
// waits for room already.
func TestNewestWeightCounts(t *testing.T) {
	run(t, func(e env) {
		g := e.Lock(e.lock())
		narrow, wide, mid := e.lock(fair.Flow("a", 1)), e.lock(fair.Flow("a", 4)), e.lock(fair.Flow("a", 2))
		var tickets []*fair.Ticket
		stand := func(inLine, gate int) { // without any time going by
			t.Helper()
			synctest.Wait()
			line, waiting := view(e, func(v *zktest.View) []string { return sorted(v.Children(locktest.Path)) }), view(e, func(v *zktest.View) []string { return before(v, "a") })
			if len(line) != 1+inLine || len(waiting) != gate {
				t.Fatalf("in line %d, before the gate %d; want %d and %d", len(line)-1, len(waiting), inLine, gate)
			}
		}
		join := func(l *fair.Lock, inLine, gate int) {
			t.Helper()
			tickets = append(tickets, e.join(l))
			stand(inLine, gate)
		}
		join(narrow, 1, 0)
		join(narrow, 1, 1)
		join(narrow, 1, 2)
		join(wide, 4, 0) // all that wait are let in at once
		join(wide, 4, 1)
		join(mid, 4, 2) // and now there are more in line than there may be
		serve := func(inLine, gate int) {
			t.Helper()
			e.Release(g)
			g = e.Start(tickets[0].Wait).Grant(time.Second)
			tickets = tickets[1:]
			stand(inLine, gate)
		}
		serve(3, 2)
		serve(2, 2)
		serve(2, 1)
		join(narrow, 2, 2)
		serve(1, 2)
		serve(1, 1)
		serve(1, 0)
		serve(0, 0)
		e.Release(g)
		e.empty()
	})
}

// The weight is changed over and over while requests pass the gate, and replies get
// lost: nothing stalls, and nothing is left.
func TestWeightIsChangedOverAndOver(t *testing.T) {
	seeds(t, 6, func(t *testing.T, seed uint64) {
		run(t, func(e env) {
			var locks []*fair.Lock
			s := e.Open()
			for w := range 4 {
				locks = append(locks, e.at(s, fair.Flow("a", 1+w)))
			}
			e.Delay(time.Millisecond)
			tickets := make(chan *fair.Ticket, 100)
			go func() {
				for i := range 60 {
					if i%7 == int(seed) {
						e.LoseReply(zktest.OpMulti, 1+i%3)
					}
					tickets <- e.join(locks[(uint64(i)*(seed+3)+seed)%4])
					time.Sleep(time.Duration(i%5) * time.Millisecond)
				}
				close(tickets)
			}()
			for x := range tickets {
				e.Release(e.Start(x.Wait).Grant(5 * time.Second))
			}
			e.Delay(0)
			e.empty()
		})
	})
}

// A session that ends at any point of a contender's way, in the flow or in the lock's
// queue, never blocks the others for longer than it takes to end.
func TestDeathAtEachLevel(t *testing.T) {
	const timeout = 10 * time.Second
	for _, opts := range [][]recipes.Option{nil, {fair.ByHoldTime()}} {
		for steps := range 16 { // requests of the session that the server still carries out
			t.Run(fmt.Sprintf("%d options/%d steps", len(opts), steps), func(t *testing.T) {
				t.Parallel()
				run(t, func(e env) {
					l := e.lock(with(opts, fair.Flow("a", 1))...)
					e.Release(e.Lock(l)) // the directories are there
					time.Sleep(time.Second)
					s := e.Open()
					dies := e.at(s, with(opts, fair.Flow("a", 1), recipes.FailOnLoss())...)
					id, n := s.ID(), 0
					e.OnRequest(func(r zktest.Request) {
						if r.Session == id && r.Op != zktest.OpPing {
							if n++; n > steps {
								e.BlackHole(id, zktest.Both)
							}
						}
					})
					attempt := e.Start(dies.Lock)
					time.Sleep(time.Second)
					e.BlackHole(id, zktest.Both) // one that has the lock
					began := time.Now()
					for range 3 {
						e.Release(e.Start(l.Lock).Grant(timeout + time.Second))
					}
					e.Release(e.Start(e.lock(with(opts, fair.Flow("b", 1))...).Lock).Grant(timeout + time.Second))
					if took := time.Since(began); took > timeout+time.Second {
						t.Errorf("blocked for %v", took)
					}
					e.OnRequest(nil)
					if g, err := attempt.Result(); g != nil && !isClosed(g.Done()) {
						t.Errorf("%v, %v", g, err)
					}
					e.Heal()
					s.Close()
					time.Sleep(15 * time.Second)
					e.empty()
				}, zktest.AllowOpenSessions())
			})
		}
	}
}

// The first of each flow dies, and again, in both queues: each death blocks for as long
// as the session takes to end, and no longer.
func TestFirstOfEachFlowDies(t *testing.T) {
	run(t, func(e env) {
		g := e.Lock(e.lock())
		type victim struct {
			id int64
			x  *fair.Ticket
		}
		var victims []victim
		for _, flow := range []string{"a", "b", "c"} {
			for range 3 {
				s := e.Open()
				victims = append(victims, victim{s.ID(), e.joined(e.at(s, fair.Flow(flow, 1)))})
			}
			e.joined(e.lock(fair.Flow(flow, 1)))
		}
		for i := range 3 {
			for k := range 3 {
				e.Expire(victims[3*k+i].id)
			}
			synctest.Wait()
			if n := len(view(e, inLine)); n != 4 {
				t.Errorf("in line: %d, want the holder and one of each flow", n)
			}
		}
		e.Release(g)
		for _, v := range victims {
			if _, err := e.Start(v.x.Wait).Result(); !errors.Is(err, recipes.ErrSessionLost) {
				t.Errorf("%v", err)
			}
		}
	}, zktest.AllowOpenSessions())
}

// One busy flow hands the lock over as fast as a plain queue does, where it is held for
// two round trips or more: the next of the flow stands in line by then.
func TestBusyFlowIsAsFastAsAPlainQueue(t *testing.T) {
	const roundTrip = time.Millisecond // as share has it
	took := map[string]time.Duration{}
	byTime := []recipes.Option{fair.ByHoldTime()}
	for name, x := range map[string]tenant{
		"plain":        {0, 2 * roundTrip, 12, nil},
		"narrow flow":  {1, 2 * roundTrip, 12, nil},
		"wide flow":    {10, 2 * roundTrip, 12, nil},
		"by hold time": {2, 2 * roundTrip, 12, byTime},
	} {
		run(t, func(e env) { took[name] = e.share([]tenant{x}, 100, 1).took })
	}
	for name, d := range took {
		if d > took["plain"]*11/10 {
			t.Errorf("%s: %v, plain %v", name, d, took["plain"])
		}
	}
	t.Log(took)
}

// Clients that disagree for ever, faster than a contender passes the gate, don't stop it.
func TestWeightThatNeverStopsChanging(t *testing.T) {
	run(t, func(e env) {
		g := e.Lock(e.lock())
		locks := []*fair.Lock{e.lock(fair.Flow("a", 3)), e.lock(fair.Flow("a", 4))}
		e.leave(e.join(locks[0])) // the directories are there
		time.Sleep(time.Second)
		e.Delay(4 * time.Millisecond)
		tickets := make(chan *fair.Ticket, 1000)
		for i := range 200 {
			go func() { tickets <- e.join(locks[i%2]) }()
			time.Sleep(time.Millisecond)
			if i == 150 {
				if n := len(view(e, inLine)); n < 4 {
					t.Errorf("in line: %d, want the holder and three at least", n)
				}
			}
		}
		e.Delay(0)
		for range 200 {
			e.leave(<-tickets)
		}
		e.Release(g)
		e.empty()
	})
}

// The counter of a queue is nearly used up: it is renewed when nobody is in it, in the
// lock's queue and before the gate, and until then newcomers are told so.
func TestCounterIsNearlyUsedUp(t *testing.T) {
	const end = 1<<31 - 1<<20
	for _, path := range []string{locktest.Path, flows + "/a/queue"} {
		run(t, func(e env) {
			l := e.lock(fair.Flow("a", 1))
			e.Release(e.Lock(l))
			time.Sleep(time.Second)
			e.SetSequence(path, end)
			e.Release(e.Lock(e.lock(fair.Flow("a", 1))))
			tickets := []*fair.Ticket{e.joined(l)}
			if path != locktest.Path {
				tickets = append(tickets, e.joined(l), e.joined(l)) // and one of them before the gate
			}
			e.SetSequence(path, end)
			e.Start(e.lock(fair.Flow("a", 1)).Lock).Fails(time.Second, recipes.ErrExhausted)
			for _, x := range tickets {
				e.Release(e.Start(x.Wait).Grant(time.Second))
			}
			e.Release(e.Lock(e.lock(fair.Flow("a", 1))))
			e.empty()
		})
	}
}
