package semaphore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 29, case 68: a holder's session ends: it is told before its permits are
// given to others, and they come back within the session's timeout and a second.
func TestPermitsOfASessionThatDiedComeBack(t *testing.T) {
	for name, lose := range map[string]func(e env, s *session.Session){
		"expired": func(e env, s *session.Session) { e.Expire(s.ID()) },
		"cut off": func(e env, s *session.Session) { e.BlackHole(s.ID(), zktest.Both) },
		"closed":  func(e env, s *session.Session) { s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(e env) {
				w := &watchman{size: 3}
				s := e.Open()
				revoked := make(chan recipes.Revocation, 4)
				sem := e.sem(s, 3, recipes.Owner("worker"), recipes.OnRevoke(func(r recipes.Revocation) { revoked <- r }))
				a, b := e.held(sem, 1), e.held(sem, 1)
				c := e.held(e.fresh(3), 1)
				w.saw(e.T, a)
				w.saw(e.T, b)
				w.saw(e.T, c)
				next := e.take(e.fresh(3), 2)
				e.contenders(4)
				lose(e, s)
				g := next.Grant(s.Timeout() + time.Second)
				if name == "expired" { // its client could not know
					<-a.Done()
					<-b.Done()
				}
				w.saw(e.T, g)
				slotsAre(e.T, g, 0, 1)
				for range 2 {
					if r := locktest.Await(e.Env, revoked); r.Owner != "worker" || !errors.Is(r.Cause, recipes.ErrRevoked) {
						e.T.Errorf("%+v", r)
					}
				}
				if err := a.Release(e.T.Context()); !errors.Is(err, recipes.ErrRevoked) {
					e.T.Error(err)
				}
				e.Heal()
				e.Release(g)
				e.Release(c)
				time.Sleep(time.Minute)
				if len(revoked) > 0 {
					e.T.Error("told twice")
				}
				e.Empty()
			}, zktest.AllowOpenSessions())
		})
	}
}

// case 40: an operator removes the node of a holder, or of a waiter.
func TestNodeIsRemoved(t *testing.T) {
	run(t, func(e env) {
		a, b := e.held(e.fresh(2), 1), e.held(e.fresh(2), 1)
		first, second := e.take(e.fresh(2), 1), (*locktest.Attempt)(nil)
		e.contenders(3)
		second = e.take(e.fresh(2, recipes.FailOnLoss()), 1)
		e.contenders(4)
		time.Sleep(time.Second)
		e.Delete(e.node(a))
		g := first.Grant(time.Second)
		slotsAre(t, g, 0)
		<-a.Done()
		if !errors.Is(a.Err(), recipes.ErrNodeDeleted) {
			t.Error(a.Err())
		}
		// The waiter's: with FailOnLoss it says so.
		e.Delete(locktest.Path + "/" + e.Children(locktest.Path)[2])
		second.Fails(10*time.Second, recipes.ErrNodeDeleted)
		e.Release(b)
		e.Release(g)
		e.Empty()
	})
}

// case 17: the first in line loses its node, and queues again behind the others.
func TestFirstInLineLosesItsNode(t *testing.T) {
	run(t, func(e env) {
		g := e.held(e.fresh(2), 2)
		a := e.take(e.fresh(2), 2)
		e.contenders(2)
		b := e.take(e.fresh(2), 2)
		e.contenders(3)
		e.Delete(locktest.Path + "/" + e.Children(locktest.Path)[1])
		time.Sleep(10 * time.Second)
		e.contenders(3)
		e.Release(g)
		h := b.Grant(time.Second)
		if !a.Pending() {
			t.Fatal("four of two")
		}
		e.Release(h)
		e.Release(a.Grant(time.Second))
	})
}

// case 44: everything is removed, while some hold and some wait.
func TestDirectoryIsRemoved(t *testing.T) {
	run(t, func(e env) {
		g := e.held(e.fresh(2), 2)
		a, b := e.take(e.fresh(2), 1), e.take(e.fresh(2), 1)
		e.contenders(3)
		time.Sleep(10 * time.Second) // by now all look after their own nodes
		e.DeleteAll("/locks")
		<-g.Done()
		x, y := a.Grant(10*time.Second), b.Grant(10*time.Second)
		e.Release(x)
		e.Release(y)
	})
}

// case 16: a waiter dies in the middle of the queue, or at its head.
func TestWaiterDies(t *testing.T) {
	for who := range 3 {
		run(t, func(e env) {
			g := e.held(e.fresh(2), 1)
			h := e.held(e.fresh(2), 1)
			var waiting []*locktest.Attempt
			var sessions []*session.Session
			for i := range 3 {
				s := e.Open()
				sessions = append(sessions, s)
				waiting = append(waiting, e.take(e.sem(s, 2, recipes.FailOnLoss()), 1))
				e.contenders(3 + i)
			}
			e.Expire(sessions[who].ID())
			waiting[who].Fails(10*time.Second, recipes.ErrSessionLost)
			for i, a := range waiting {
				if i != who && !a.Pending() {
					t.Fatal("granted")
				}
			}
			e.Release(h)
			for i, a := range waiting {
				if i != who {
					e.Release(a.Grant(time.Second))
				}
			}
			e.Release(g)
			e.Empty()
		})
	}
}

// case 19, case 23: a short cut while waiting: what was released during the cut is
// noticed after it, and places are kept.
func TestConnectionsAreCutWhileWaiting(t *testing.T) {
	run(t, func(e env) {
		holder := e.Open()
		g := e.held(e.sem(holder, 2), 2)
		var waiting []*locktest.Attempt
		var sessions []*session.Session
		for i := range 3 {
			s := e.Open()
			sessions = append(sessions, s)
			waiting = append(waiting, e.take(e.sem(s, 2), 1))
			e.contenders(2 + i)
		}
		names := e.Children(locktest.Path)
		e.Refuse(true)
		for _, s := range sessions {
			e.Cut(s.ID())
		}
		e.Release(g)
		time.Sleep(time.Second)
		e.Refuse(false)
		a, b := waiting[0].Grant(2*time.Second), waiting[1].Grant(2*time.Second)
		if got := e.Children(locktest.Path); fmt.Sprint(got) != fmt.Sprint(names[1:]) {
			t.Errorf("in the queue: %q, were %q", got, names[1:])
		}
		e.Release(a)
		e.Release(b)
		e.Release(waiting[2].Grant(time.Second))
	})
}

// Several permits come free at the same moment: the lowest slot is given, also where
// its node is not the first that the server tells of.
func TestSessionWithSeveralPermitsDies(t *testing.T) {
	for range 10 {
		run(t, func(e env) {
			first := e.held(e.fresh(4), 1)
			s := e.Open()
			sem := e.sem(s, 4)
			for range 3 {
				e.held(sem, 1)
			}
			e.Release(first)
			slotsAre(e.T, e.held(sem, 1), 0)
			next := e.take(e.fresh(4), 1)
			e.contenders(5)
			e.Expire(s.ID())
			g := next.Grant(time.Second)
			slotsAre(e.T, g, 0)
			e.Release(g)
			time.Sleep(5 * time.Second) // the session comes back
		})
	}
}

// All who wait on one session share one watch of the record. What its answer said of
// the number of children may be older than the own node: here, that the holder was the
// only one.
func TestRecordIsWatchedSinceBeforeTheOwnNodeWasMade(t *testing.T) {
	run(t, func(e env) {
		g := e.held(e.fresh(1), 1)
		s := e.Open()
		sem := e.sem(s, 1)
		reads := 0 // of the record, since the contender is in line
		e.OnRequest(func(r zktest.Request) {
			if r.Session != s.ID() || r.Op != zktest.OpGetData || r.Path != locktest.Path {
				return
			}
			if names := leases(e.Children(locktest.Path)); len(names) == 2 {
				if reads++; reads == 2 { // it watches, and its node goes just before
					e.Delete(locktest.Path + "/" + names[1])
				}
			}
		})
		next := e.take(sem, 1)
		e.contenders(1)
		e.contenders(2) // it has found out, and stands in line again
		if reads != 4 {
			t.Fatalf("%d reads of the record: want one with each node, one to watch, one since the other node has gone", reads)
		}
		e.Cut(s.ID()) // all watches end, and the holder is there all the same
		time.Sleep(10 * time.Second)
		if !next.Pending() {
			t.Fatal("two permits of one")
		}
		e.Release(g)
		e.Release(next.Grant(time.Second))
	})
}
