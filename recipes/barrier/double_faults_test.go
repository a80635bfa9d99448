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
		if c := e.Requests(); c.Of(zktest.OpGetChildren)+c.Of(zktest.OpGetChildren2) != 0 {
			t.Error("those who wait list the names")
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
