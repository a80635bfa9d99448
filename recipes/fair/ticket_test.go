package fair_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// kinds are locks for which the same is promised of tickets: in a plain queue, before
// the gate of a flow, and in the lock's queue behind it.
var kinds = map[string][]recipes.Option{
	"plain":        nil,
	"narrow flow":  {fair.Flow("a", 1)},
	"wide flow":    {fair.Flow("a", 100)},
	"by hold time": {fair.Flow("a", 2), fair.ByHoldTime()},
}

func eachKind(t *testing.T, f func(e env, opts []recipes.Option), opts ...zktest.Option) {
	for name, flow := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(e env) { f(e, flow); e.empty() }, opts...)
		})
	}
}

func with(opts []recipes.Option, more ...recipes.Option) []recipes.Option {
	return append(append([]recipes.Option(nil), opts...), more...)
}

func TestJoinDoesNotWait(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		l := e.lock(opts...)
		g := e.Lock(l)
		e.Delay(10 * time.Millisecond)
		began := time.Now()
		tickets := []*fair.Ticket{e.join(l), e.join(l), e.join(l), e.join(l)}
		if took := time.Since(began); took > 4*20*time.Millisecond {
			t := e.T
			t.Errorf("four joins took %v", took)
		}
		e.Delay(0)
		for _, x := range tickets {
			e.Release(g)
			g = e.Start(x.Wait).Grant(time.Second)
		}
		e.Release(g)
	})
}

func TestJoinFails(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		l := e.lock(opts...)
		ctx, cancel := context.WithCancelCause(e.T.Context())
		why := errors.New("why")
		cancel(why)
		e.ResetCounts()
		if x, err := l.Join(ctx); x != nil || !errors.Is(err, why) {
			e.T.Errorf("under an ended context: %v, %v", x, err)
		}
		if n := e.Requests().Total(); n != 0 {
			e.T.Errorf("%d requests", n)
		}
		// The context ends at any request of the way.
		e.Release(e.Lock(l))
		for n := 1; n <= 3; n++ {
			e.BlackHole(0, zktest.ToClient)
			ctx, cancel := context.WithTimeout(e.T.Context(), time.Duration(n)*time.Second)
			x, err := l.Join(ctx)
			cancel()
			if x != nil || !errors.Is(err, context.DeadlineExceeded) {
				e.T.Errorf("%v, %v", x, err)
			}
			e.Heal()
			time.Sleep(15 * time.Second)
		}
		e.empty()
		e.Release(e.Lock(l))
	})
}

// A Wait whose context ends keeps the place.
func TestWaitKeepsThePlace(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		l := e.lock(opts...)
		g := e.Lock(l)
		x := e.joined(l)
		second := e.Start(l.Lock)
		synctest.Wait()
		why := errors.New("why")
		for range 3 {
			ctx, cancel := context.WithCancelCause(e.T.Context())
			a := e.StartContext(ctx, x.Wait)
			time.Sleep(10 * time.Second)
			if !a.Pending() {
				e.T.Fatal("did not wait")
			}
			cancel(why)
			a.Fails(now, why)
		}
		e.Release(g)
		ended, cancel := context.WithCancel(e.T.Context())
		cancel()
		e.StartContext(ended, x.Wait).Fails(now, context.Canceled) // also when the turn has come
		time.Sleep(time.Minute)
		if !second.Pending() {
			e.T.Fatal("the place was lost")
		}
		g = e.Start(x.Wait).Grant(time.Second)
		e.Release(g)
		e.Release(second.Grant(time.Second))
	})
}

// Several wait for one ticket: one of them gets the grant.
func TestSeveralWaitForOneTicket(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		l := e.lock(opts...)
		g := e.Lock(l)
		x := e.joined(l)
		var attempts []*locktest.Attempt
		for range 20 {
			attempts = append(attempts, e.Start(x.Wait))
		}
		attempts[3].Cancel()
		time.Sleep(time.Second)
		e.Release(g)
		grants := 0
		for i, a := range attempts {
			switch g, err := a.Result(); {
			case g != nil:
				grants++
				defer e.Release(g)
			case i == 3 && errors.Is(err, context.Canceled):
			case !errors.Is(err, fair.ErrSpent):
				e.T.Errorf("%v", err)
			}
		}
		if grants != 1 {
			e.T.Errorf("%d grants", grants)
		}
		e.Start(x.Wait).Fails(now, fair.ErrSpent)
	})
}

func TestLeaveIsIdempotent(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		l := e.lock(opts...)
		g := e.Lock(l)
		for range 3 {
			x := e.joined(l)
			waiting := e.Start(x.Wait)
			synctest.Wait()
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() { e.leave(x) })
			}
			wg.Wait()
			waiting.Fails(now, fair.ErrSpent)
			e.Start(x.Wait).Fails(now, fair.ErrSpent)
			e.leave(x)
		}
		if n := len(view(e, everything)); n != 1 {
			e.T.Errorf("%d nodes are left, want the holder's", n)
		}
		e.Release(g)
	})
}

// Leave returns nil only when nothing of the ticket is there any more, at whichever
// point of its way it was left.
func TestLeaveConfirmsThatNothingIsLeft(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		l := e.lock(opts...)
		e.Release(e.Lock(l))
		time.Sleep(time.Second)
		e.Delay(10 * time.Millisecond)
		for at := 0; at < 80; at += 3 {
			x := e.join(l)
			time.Sleep(time.Duration(at) * time.Millisecond)
			e.leave(x)
			if left := view(e, everything); len(left) > 0 {
				e.T.Errorf("left after %d ms, and confirmed; still there: %q", at, left)
			}
		}
		e.Delay(0)
		e.Release(e.Lock(l))
	})
}

// Nor does it while what was sent may yet arrive.
func TestLeaveWhileTheConnectionIsDown(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		l := e.lock(opts...)
		e.Release(e.Lock(l))
		time.Sleep(time.Second)
		for after := range 10 { // somewhere on its way to the lock
			e.Delay(10 * time.Millisecond)
			x := e.join(l)
			time.Sleep(time.Duration(5*after) * time.Millisecond)
			e.BlackHole(0, zktest.ToClient)
			ctx, cancel := context.WithTimeout(e.T.Context(), time.Second)
			err := x.Leave(ctx)
			cancel()
			if err == nil && len(view(e, everything)) > 0 || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				e.T.Errorf("leave: %v; there: %q", err, view(e, everything))
			}
			e.Start(x.Wait).Fails(now, fair.ErrSpent)
			e.Delay(0)
			e.Heal()
			e.leave(x)
			if left := view(e, everything); len(left) > 0 {
				e.T.Errorf("confirmed; still there: %q", left)
			}
		}
		e.Release(e.Lock(l))
	})
}

// The context bounds the wait for the confirmation, and nothing else.
func TestLeaveUnderAnEndedContext(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		l := e.lock(opts...)
		g := e.Lock(l)
		for range 3 {
			x := e.joined(l)
			n := len(view(e, everything))
			ended, cancel := context.WithCancel(e.T.Context())
			cancel()
			if err := x.Leave(ended); err != nil && !errors.Is(err, context.Canceled) {
				e.T.Error(err)
			}
			time.Sleep(time.Second)
			if m := len(view(e, everything)); m >= n {
				e.T.Errorf("%d nodes, %d before Leave", m, n)
			}
		}
		e.Release(g)
	})
}

func TestLeaveAfterTheGrantDoesNothing(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		l := e.lock(opts...)
		x := e.joined(l)
		g := e.Start(x.Wait).Grant(time.Second)
		e.leave(x)
		time.Sleep(time.Minute)
		if g.Err() != nil {
			e.T.Errorf("the grant: %v", g.Err())
		}
		e.Release(g)
		e.leave(x)
	})
}

// Leave races with the turn and with Wait: either there is a grant or the place is
// gone, and the next gets the lock.
func TestLeaveRacesWithTheTurn(t *testing.T) {
	seeds(t, 20, func(t *testing.T, seed uint64) {
		for name, opts := range kinds {
			run(t, func(e env) {
				l := e.lock(opts...)
				g := e.Lock(l)
				x := e.joined(l)
				next := e.Start(e.lock(opts...).Lock)
				synctest.Wait()
				e.Delay(5 * time.Millisecond)
				waiting := e.Start(x.Wait)
				go g.Release(e.T.Context())
				time.Sleep(time.Duration(seed) * time.Millisecond)
				e.leave(x)
				if g, err := waiting.Result(); g != nil {
					e.Release(g)
				} else if !errors.Is(err, fair.ErrSpent) {
					t.Errorf("%s: %v", name, err)
				}
				e.Release(next.Grant(time.Second))
				e.Delay(0)
				e.empty()
			})
		}
	})
}

// The lock is kept for a ticket whose turn has come, however long nobody waits for it.
func TestTicketWhoseTurnHasComeHoldsOthersUp(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		l := e.lock(opts...)
		x := e.joined(l)
		next := e.Start(e.lock(opts...).Lock)
		time.Sleep(time.Hour)
		if !next.Pending() {
			e.T.Fatal("the lock was given away")
		}
		e.leave(x)
		e.Release(next.Grant(time.Second))
	})
}

// It is lost with its session: the next gets the lock, and Wait says so.
func TestTicketIsLostWithItsSession(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		for _, turn := range []bool{true, false} {
			for how, lose := range map[string]func(*session.Session){
				"expired":    func(s *session.Session) { e.Expire(s.ID()) },
				"closed":     func(s *session.Session) { s.Close() },
				"cut off":    func(s *session.Session) { e.BlackHole(s.ID(), zktest.Both) },
				"from below": func(s *session.Session) { e.BlackHole(s.ID(), zktest.ToServer) },
			} {
				s := e.Open()
				revoked := make(chan recipes.Revocation, 10)
				l := e.at(s, with(opts, recipes.OnRevoke(func(r recipes.Revocation) { revoked <- r }))...)
				var g *recipes.Grant
				if !turn {
					g = e.Lock(e.lock(opts...))
				}
				x, waits := e.joined(l), (*locktest.Attempt)(nil)
				if !turn {
					waits = e.Start(x.Wait)
				}
				next := e.Start(e.lock(opts...).Lock)
				synctest.Wait()
				lose(s)
				if turn {
					e.Release(next.Grant(11 * time.Second))
				}
				time.Sleep(20 * time.Second) // who holds nothing waits for the connection that long
				want := recipes.ErrSessionLost
				if how == "closed" {
					want = recipes.ErrSessionClosed
				}
				if waits != nil {
					waits.Fails(now, want)
				}
				e.Start(x.Wait).Fails(now, want)
				if g != nil {
					e.Release(g)
					e.Release(next.Grant(time.Second))
				}
				e.leave(x)
				if len(revoked) > 0 {
					e.T.Errorf("%s: told of %+v, though there was no grant", how, <-revoked)
				}
				e.Heal()
				s.Close()
				time.Sleep(15 * time.Second)
			}
		}
	}, zktest.AllowOpenSessions())
}

// Close passes the lock on: those of other sessions get it in their order.
// Under the strict policy, a blip takes the lock from a ticket whose turn has come, and
// leaves the others in line.
func TestConnectionOfATicketIsSuspendedUnderTheStrictPolicy(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		s := e.Open(func(c *session.Config) { c.RevokeOnSuspend = true })
		first := e.joined(e.at(s, opts...))
		second := e.joined(e.at(s, opts...))
		e.Cut(s.ID())
		synctest.Wait()
		lost := e.Start(first.Wait)
		lost.Fails(time.Second, recipes.ErrSuspended)
		if _, err := lost.Result(); strings.Contains(err.Error(), "removed") {
			e.T.Errorf("nobody has removed anything: %v", err)
		}
		e.Release(e.Start(second.Wait).Grant(time.Second))
	})
}

func TestCloseWithTickets(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		s := e.Open()
		l := e.at(s, opts...)
		var tickets []*fair.Ticket
		var others []*locktest.Attempt
		for range 3 {
			tickets = append(tickets, e.joined(l))
			others = append(others, e.Start(e.lock(opts...).Lock))
			synctest.Wait()
		}
		s.Close()
		for i, a := range others {
			e.Release(a.Grant(time.Second))
			e.Start(tickets[i].Wait).Fails(now, recipes.ErrSessionClosed)
			e.leave(tickets[i])
		}
	})
}

func TestJoinUnderAGrant(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		l := e.lock(opts...)
		g := e.Lock(l)
		ctx := g.Context(e.T.Context())
		x, err := l.Join(ctx)
		if err != nil {
			e.T.Fatal(err)
		}
		e.StartContext(ctx, x.Wait).Fails(now, recipes.ErrDeadlock)
		e.Release(g)
		// ctx is over now; under another one the place is still there.
		e.Release(e.Start(x.Wait).Grant(time.Second))
	})
}

// The time of MaxHold begins with the grant.
func TestMaxHoldBeginsAtTheGrant(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		revoked := make(chan recipes.Revocation, 1)
		l := e.lock(with(opts, recipes.MaxHold(10*time.Second), recipes.OnRevoke(func(r recipes.Revocation) { revoked <- r }))...)
		x := e.joined(l)
		time.Sleep(time.Hour)
		g := e.Start(x.Wait).Grant(now)
		time.Sleep(10*time.Second - time.Millisecond)
		if g.Err() != nil {
			e.T.Fatal(g.Err())
		}
		time.Sleep(time.Millisecond)
		if r := locktest.Await(e.Env, revoked); !errors.Is(r.Cause, recipes.ErrHeldTooLong) {
			e.T.Errorf("%+v", r)
		}
	})
}

// A lock delay follows if the session of a ticket dies for which the lock was kept,
// and not if it is left.
func TestLockDelayWithTickets(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		const delay = 30 * time.Second
		opts = with(opts, recipes.LockDelay(delay))
		next := e.lock(opts...)
		x := e.joined(e.lock(opts...))
		waiting := e.Start(next.Lock)
		synctest.Wait()
		e.leave(x)
		e.Release(waiting.Grant(time.Second))

		s := e.Open()
		x = e.joined(e.at(s, opts...))
		waiting = e.Start(next.Lock)
		synctest.Wait()
		began := time.Now()
		e.Expire(s.ID())
		e.Release(waiting.Grant(time.Minute))
		if took := time.Since(began); took < delay {
			e.T.Errorf("granted %v after the death", took)
		}
		e.leave(x)

		// One that waits in the queue leaves and dies without one.
		g := e.Lock(next)
		s = e.Open()
		e.leave(e.joined(e.at(s, opts...)))
		e.joined(e.at(s, opts...))
		waiting = e.Start(next.Lock)
		synctest.Wait()
		e.Expire(s.ID())
		e.Release(g)
		e.Release(waiting.Grant(time.Second))
		time.Sleep(15 * time.Second)
	})
}

func TestLockFailsOnLoss(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		g := e.Lock(e.lock(opts...))
		s := e.Open()
		fails, again := e.Start(e.at(s, with(opts, recipes.FailOnLoss())...).Lock), e.Start(e.at(s, opts...).Lock)
		synctest.Wait()
		e.Expire(s.ID())
		fails.Fails(time.Minute, recipes.ErrSessionLost)
		if !again.Pending() {
			e.T.Error("gave up")
		}
		e.Release(g)
		e.Release(again.Grant(time.Minute))
	})
}
