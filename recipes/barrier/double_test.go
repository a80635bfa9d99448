package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/barrier"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func TestMembersEnterAndLeaveTogether(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		locktest.Run(t, func(e *locktest.Env) {
			var ds []*barrier.Double
			for range n {
				ds = append(ds, double(e, e.Open(), n))
			}
			for range 3 {
				var entries []*entry
				for i, d := range ds {
					for _, before := range entries {
						if !before.Pending() {
							t.Fatalf("%d of %d have come, and one went in", i, n)
						}
					}
					entries = append(entries, enter(e, d))
					time.Sleep(time.Minute)
				}
				var leaving []chan error
				for _, en := range entries {
					for _, l := range leaving {
						if !pending(l) {
							t.Fatal("left before the others")
						}
					}
					leaving = append(leaving, leave(e, en.Pass(time.Second)))
					time.Sleep(time.Minute)
				}
				for _, l := range leaving {
					must(t, locktest.Await(e, l))
				}
				e.Empty()
			}
		})
	}
}

// Who comes when a round is full waits until all of it have left, in order.
func TestNextRoundWaits(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		var entries []*entry
		for i := range 8 {
			entries = append(entries, enter(e, double(e, e.Open(), 3)))
			e.Queued(i + 1)
		}
		for r := range 2 {
			for i, en := range entries[r*3:] {
				if en.Pending() != (i >= 3) {
					t.Fatalf("round %d: member %d", r, i)
				}
			}
			for i := range 3 {
				p := entries[r*3+2-i].Pass(time.Second)
				if i == 1 {
					e.Release(p.Grant) // without waiting
				} else {
					go p.Leave(e.T.Context())
				}
				time.Sleep(time.Minute)
			}
		}
		for _, en := range entries[6:] {
			if !en.Pending() {
				t.Error("two went in")
			}
			en.Cancel()
			en.Fails(time.Second, context.Canceled)
		}
		e.Empty()
	})
}

// Members that give up or die do not count, whoever they are.
func TestMembersDieBeforeTheirRoundIsFull(t *testing.T) {
	for name, die := range map[string]func(e *locktest.Env, s *session.Session, en *entry){
		"gave up": func(e *locktest.Env, s *session.Session, en *entry) { en.Cancel(); en.Result() },
		"expired": func(e *locktest.Env, s *session.Session, en *entry) { e.Expire(s.ID()); en.Result() },
		"closed":  func(e *locktest.Env, s *session.Session, en *entry) { s.Close(); en.Result() },
	} {
		t.Run(name, func(t *testing.T) {
			for dies := range 3 {
				locktest.Run(t, func(e *locktest.Env) {
					var entries []*entry
					var sessions []*session.Session
					for i := range 3 {
						sessions = append(sessions, e.Open())
						entries = append(entries, enter(e, double(e, sessions[i], 4, recipes.FailOnLoss())))
						e.Queued(i + 1)
					}
					die(e, sessions[dies], entries[dies])
					e.Queued(2)
					third := enter(e, double(e, e.Open(), 4))
					e.Queued(3)
					for i, en := range append(entries, third) {
						if i != dies && !en.Pending() {
							t.Fatal("went in")
						}
					}
					entries[dies] = enter(e, double(e, e.Open(), 4))
					var leaving []chan error
					for _, en := range append(entries, third) {
						leaving = append(leaving, leave(e, en.Pass(time.Second)))
					}
					for _, l := range leaving {
						must(t, locktest.Await(e, l))
					}
				})
			}
		})
	}
}

// A member dies inside: it is told, and the others leave without it.
func TestMemberDiesInside(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		told := make(chan recipes.Revocation, 1)
		mine := enter(e, double(e, s, 3, recipes.OnRevoke(func(r recipes.Revocation) { told <- r })))
		e.Queued(1)
		a, b := enter(e, double(e, e.Open(), 3)), enter(e, double(e, e.Open(), 3))
		pass := mine.Pass(time.Second)
		la := leave(e, a.Pass(time.Second))
		start := time.Now()
		e.BlackHole(s.ID(), zktest.Both)
		<-pass.Done()
		if d := time.Since(start); d > s.Timeout() || !pending(la) {
			t.Errorf("told after %v, the others have left: %v", d, !pending(la))
		}
		if r := locktest.Await(e, told); !errors.Is(r.Cause, recipes.ErrSessionLost) {
			t.Error(r.Cause)
		}
		if err := pass.Leave(e.T.Context()); !errors.Is(err, recipes.ErrSessionLost) {
			t.Error(err)
		}
		e.Heal()
		lb := leave(e, b.Pass(time.Second))
		must(t, locktest.Await(e, la))
		must(t, locktest.Await(e, lb))
		time.Sleep(15 * time.Second)
	})
}

// The session of one that waits, or that leaves, is lost.
func TestWaitingMemberLosesItsSession(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s, other := e.Open(), double(e, e.Open(), 2)
		for range 3 {
			mine := enter(e, double(e, s, 2))
			e.Queued(1)
			e.Expire(s.ID())
			time.Sleep(time.Minute)
			e.Queued(1)
			p := enter(e, other).Pass(time.Second)
			l := leave(e, mine.Pass(time.Second))
			if !pending(l) {
				t.Error("left before the other")
			}
			e.Expire(s.ID())
			time.Sleep(time.Minute)
			if !pending(l) {
				t.Error("left before the other")
			}
			must(t, p.Leave(e.T.Context()))
			must(t, locktest.Await(e, l))
		}
	})
}

// All of a full round's openers die while the round before is still inside.
func TestOpenersDieWhileTheyWaitForTheRoundBefore(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		a := enter(e, double(e, e.Open(), 2))
		b := enter(e, double(e, e.Open(), 2))
		pa, pb := a.Pass(time.Second), b.Pass(time.Second)
		c := enter(e, double(e, e.Open(), 2))
		e.Queued(3)
		s := e.Open()
		d := enter(e, double(e, s, 2, recipes.FailOnLoss()))
		e.Queued(4)
		e.Expire(s.ID())
		d.Fails(time.Minute, recipes.ErrSessionLost)
		f := enter(e, double(e, e.Open(), 2))
		e.Queued(4)
		e.Release(pa.Grant)
		if !c.Pending() || !f.Pending() {
			t.Error("went in while one was inside")
		}
		e.Release(pb.Grant)
		e.Release(c.Pass(time.Second).Grant)
		e.Release(f.Pass(time.Second).Grant)
	})
}

func TestSizesDisagree(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		a := enter(e, double(e, e.Open(), 2))
		e.Queued(1)
		before := e.Tree()
		if _, err := double(e, e.Open(), 3).Enter(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
		if e.Tree() != before {
			t.Errorf("written:\n%s", e.Tree())
		}
		b := enter(e, double(e, e.Open(), 2))
		e.Release(a.Pass(time.Second).Grant)
		e.Release(b.Pass(time.Second).Grant)
		e.Empty()
		// Nobody is there: another size may be used from now on.
		e.Release(enter(e, double(e, e.Open(), 1)).Pass(time.Second).Grant)
	})
}

func TestEnterUnderAPasssContext(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		d := double(e, e.Open(), 1)
		p := enter(e, d).Pass(time.Second)
		if _, err := d.Enter(p.Context(e.T.Context())); !errors.Is(err, recipes.ErrDeadlock) {
			t.Error(err)
		}
		must(t, p.Leave(e.T.Context()))
	})
}

// An operator deletes a waiting member's node, or all.
func TestOperatorDeletesMembers(t *testing.T) {
	for _, all := range []bool{false, true} {
		locktest.Run(t, func(e *locktest.Env) {
			a := enter(e, double(e, e.Open(), 2))
			e.Queued(1)
			time.Sleep(time.Minute)
			if all {
				e.DeleteAll(locktest.Path)
			} else {
				e.Delete(locktest.Path + "/" + e.Children(locktest.Path)[0])
			}
			time.Sleep(time.Second)
			e.Queued(1) // it came again
			b := enter(e, double(e, e.Open(), 2))
			e.Release(a.Pass(time.Second).Grant)
			e.Release(b.Pass(time.Second).Grant)
		})
	}
}

// A new leader of the ensemble gives numbers again that were given before.
func TestCounterGoesBack(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		d := double(e, e.Open(), 1)
		for range 5 {
			must(t, enter(e, d).Pass(time.Second).Leave(e.T.Context()))
		}
		e.SetSequence(locktest.Path, 2)
		if _, err := d.Enter(e.T.Context()); !errors.Is(err, recipes.ErrExhausted) {
			t.Error(err)
		}
		e.Empty()
	})
}

// The way in is no herd: no names are listed by those who wait, and each is woken
// once.
func TestEnteringIsNoHerd(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		const n = 60
		var entries []*entry
		for i := range n - 1 {
			entries = append(entries, enter(e, double(e, e.Open(), n)))
			e.Queued(i + 1)
		}
		time.Sleep(time.Minute)
		e.ResetCounts()
		entries = append(entries, enter(e, double(e, e.Open(), n)))
		for _, en := range entries {
			en.Pass(time.Second)
		}
		c := e.Requests()
		lists := c.Of(zktest.OpGetChildren) + c.Of(zktest.OpGetChildren2)
		t.Logf("%d lists, %d reads, %d events", lists, c.Of(zktest.OpGetData), c.Events)
		if lists != 1 || c.Events > n || c.Of(zktest.OpGetData) > n+6 {
			t.Errorf("%d lists, %d reads, %d events", lists, c.Of(zktest.OpGetData), c.Events)
		}
		var wg sync.WaitGroup
		for _, en := range entries {
			wg.Go(func() { must(t, en.pass.Leave(e.T.Context())) })
		}
		wg.Wait()
		c = e.Requests()
		t.Logf("left: %d lists, %d events", c.Of(zktest.OpGetChildren)+c.Of(zktest.OpGetChildren2), c.Events)
	})
}

// Each request of an Enter is the moment at which ctx ends or the connection breaks.
func TestEnterIsInterruptedAtEachRequest(t *testing.T) {
	for _, how := range []string{"cancel", "cut"} {
		for step := 1; step <= 10; step++ {
			locktest.Run(t, func(e *locktest.Env) {
				a := enter(e, double(e, e.Open(), 2))
				e.Queued(1)
				s := e.Open()
				var n atomic.Int32
				var mine *entry
				begun := make(chan struct{})
				e.OnRequest(func(r zktest.Request) {
					if r.Session == s.ID() && r.Op != zktest.OpPing && int(n.Add(1)) == step {
						<-begun
						if how == "cancel" {
							mine.Cancel()
						} else {
							go e.Cut(s.ID())
						}
					}
				})
				mine = enter(e, double(e, s, 2))
				close(begun)
				_, err := mine.Result()
				if err != nil && (how == "cut" || !errors.Is(err, context.Canceled)) {
					t.Errorf("step %d: %v", step, err)
				}
				e.OnRequest(nil)
				if err == nil {
					e.Release(mine.pass.Grant)
				} else if a.Pending() {
					time.Sleep(time.Second)
					e.Queued(1)
					mine = enter(e, double(e, s, 2))
					e.Release(mine.Pass(time.Second).Grant)
				}
				e.Release(a.Pass(time.Second).Grant)
				e.Empty()
			})
		}
	}
}

// Members come, leave, give up and die at random. At no moment is more than one
// round inside, and in the end nobody waits who could go in.
func TestRandomRounds(t *testing.T) {
	for seed := range 3 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) { randomRounds(e, uint64(seed)) })
		})
	}
}

func randomRounds(e *locktest.Env, seed uint64) {
	const size, members = 3, 8
	r := rand.New(rand.NewPCG(seed, 1))
	stop, stopNow := context.WithCancel(e.T.Context())
	var wg sync.WaitGroup
	var sessions []*session.Session
	var passes atomic.Int32
	var mu sync.Mutex
	var inside []*barrier.Pass
	saw := func(p *barrier.Pass) {
		passes.Add(1)
		there := map[recipes.Token]bool{} // on the server: what was expired on purpose is not
		for _, name := range e.Children(locktest.Path) {
			if stat, ok := e.Stat(locktest.Path + "/" + name); ok {
				there[recipes.Token(stat.Czxid)] = true
			}
		}
		mu.Lock()
		defer mu.Unlock()
		inside = slices.DeleteFunc(append(inside, p), func(p *barrier.Pass) bool {
			return p.Err() != nil || !there[p.Token()]
		})
		if len(inside) > size {
			e.T.Errorf("%d inside", len(inside))
		}
	}
	for i := range members {
		s := e.Open()
		sessions = append(sessions, s)
		mine := rand.New(rand.NewPCG(seed, uint64(10+i)))
		d := double(e, s, size)
		wg.Go(func() {
			for stop.Err() == nil {
				ctx, cancel := context.WithCancel(stop)
				if mine.IntN(5) == 0 {
					ctx, cancel = context.WithTimeout(stop, time.Duration(mine.IntN(3000))*time.Millisecond)
				}
				p, err := d.Enter(ctx)
				cancel()
				if err != nil {
					if ctx.Err() == nil {
						e.T.Errorf("Enter: %v", err)
					}
					continue
				}
				saw(p)
				time.Sleep(time.Duration(mine.IntN(1000)) * time.Millisecond)
				if err := p.Leave(stop); err != nil && stop.Err() == nil && !errors.Is(err, recipes.ErrRevoked) {
					e.T.Errorf("Leave: %v", err)
				}
			}
		})
	}
	for range 60 {
		time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
		s := sessions[r.IntN(members)]
		switch r.IntN(6) {
		case 0:
			e.Expire(s.ID())
		case 1:
			e.Cut(s.ID())
		case 2:
			e.LoseReply(zktest.OpMulti, 1)
		case 3:
			e.LoseReply(zktest.OpCreate2, 1)
		}
	}
	time.Sleep(10 * time.Second)
	stopNow()
	wg.Wait()
	e.Empty()
	var last []*entry
	for i := range size {
		last = append(last, enter(e, double(e, sessions[i], size)))
	}
	for _, en := range last {
		en.Pass(time.Minute)
	}
	for _, en := range last {
		e.Release(en.pass.Grant)
	}
	if n := passes.Load(); n < 30 {
		e.T.Errorf("%d passes only", n)
	}
	synctest.Wait()
	e.Empty()
}

// What Enter costs, as its documentation has it.
func TestCostOfEntering(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s1, s2 := e.Open(), e.Open()
		for round := range 2 { // the first makes the path, and proves that heartbeats are allowed
			e.ResetCounts()
			a := enter(e, double(e, s1, 2))
			e.Queued(1)
			first := e.Requests().Total()
			e.ResetCounts()
			b := enter(e, double(e, s2, 2))
			e.Release(b.Pass(time.Second).Grant)
			last := e.Requests().Total()
			e.Release(a.Pass(time.Second).Grant)
			t.Logf("first of a round %d requests, last %d with its release and the first's reading", first, last)
			if round == 1 && (first > 4 || last > 9) {
				t.Errorf("%d and %d requests", first, last)
			}
		}
	})
}
