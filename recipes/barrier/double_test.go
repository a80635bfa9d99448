package barrier_test

import (
	"context"
	"errors"
	"testing"
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
