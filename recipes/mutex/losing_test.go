package mutex_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// losses are the ways in which a holder can lose its lock without another's
// doing, and the reason that it hears.
var losses = map[string]struct {
	lose   func(e *locktest.Env, s *session.Session)
	reason error
}{
	"expired":             {func(e *locktest.Env, s *session.Session) { e.Expire(s.ID()) }, recipes.ErrSessionLost},
	"cut off":             {func(e *locktest.Env, s *session.Session) { e.BlackHole(s.ID(), zktest.Both) }, recipes.ErrSessionLost},
	"hears but not heard": {func(e *locktest.Env, s *session.Session) { e.BlackHole(s.ID(), zktest.ToServer) }, recipes.ErrSessionLost},
	"heard but hears not": {func(e *locktest.Env, s *session.Session) { e.BlackHole(s.ID(), zktest.ToClient) }, recipes.ErrSessionLost},
	"follower cut off":    {func(e *locktest.Env, s *session.Session) { e.CutOffFollower(s.ID()) }, recipes.ErrSessionLost},
	"refused":             {func(e *locktest.Env, s *session.Session) { e.Refuse(true); e.Cut(s.ID()) }, recipes.ErrSessionLost},
	"replaced":            {func(e *locktest.Env, s *session.Session) { e.AnswerResumeWith(77); e.Cut(s.ID()) }, recipes.ErrSessionLost},
	"closed":              {func(e *locktest.Env, s *session.Session) { s.Close() }, recipes.ErrSessionClosed},
}

// case 29, case 35, case 48
func TestHolderIsToldBeforeTheNextIsGranted(t *testing.T) {
	for name, loss := range losses {
		for _, after := range []time.Duration{0, 1700 * time.Millisecond, time.Minute} { // holding for so long
			t.Run(name+" after "+after.String(), func(t *testing.T) {
				locktest.Run(t, func(e *locktest.Env) {
					var w locktest.Witness
					s := e.Open()
					revoked := make(chan recipes.Revocation, 2)
					m := e.Mutex(s, recipes.OnRevoke(func(r recipes.Revocation) { revoked <- r }))
					g := e.Lock(m)
					w.Saw(e.T, g)
					// The one that comes next has a connection of its own.
					next := e.Start(e.New().Lock)
					e.Queued(2)
					time.Sleep(after)
					loss.lose(e, s)
					if name == "refused" { // and only for the one who lost
						time.AfterFunc(12*time.Second, func() { e.Refuse(false) })
					}
					g2 := next.Grant(30 * time.Second)
					if name == "expired" {
						<-g.Done() // its client could not know before: nothing had gone wrong
					}
					w.Saw(e.T, g2)
					if err := g.Err(); !errors.Is(err, recipes.ErrRevoked) || !errors.Is(err, loss.reason) {
						t.Errorf("Err is %v, want %v", err, loss.reason)
					}
					r := locktest.Await(e, revoked)
					if r.Token != g.Token() || r.Path != locktest.Path || r.Cause != g.Err() || r.Owner == "" {
						t.Errorf("%+v", r)
					}
					for range 2 {
						if err := g.Release(e.T.Context()); !errors.Is(err, recipes.ErrRevoked) {
							t.Errorf("Release: %v", err)
						}
					}
					if g2.Err() != nil {
						t.Error(g2.Err())
					}
					e.Release(g2)
					e.Heal()
					if name != "closed" { // the same object goes on
						g3 := e.Lock(m)
						w.Saw(e.T, g3)
						e.Release(g3)
					}
					if len(revoked) > 0 {
						t.Error("told twice")
					}
					if name == "replaced" {
						e.Expire(77)
					}
					e.Empty()
					time.Sleep(15 * time.Second)
				}, zktest.AllowOpenSessions())
			})
		}
	}
}

// case 40
func TestOperatorDeletesTheHoldersNode(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		var w locktest.Witness
		g := e.Lock(e.New())
		w.Saw(e.T, g)
		a := e.Start(e.New().Lock)
		e.Queued(2)
		start := time.Now()
		e.Delete(nodeOf(e, g))
		<-g.Done()
		if took := time.Since(start); took > time.Second || !errors.Is(g.Err(), recipes.ErrNodeDeleted) {
			t.Errorf("after %v: %v", took, g.Err())
		}
		g = a.Grant(time.Second)
		w.Saw(e.T, g)
		e.Release(g)
	})
}

// case 44, case 56
func TestLockDirectoryIsDeleted(t *testing.T) {
	for _, path := range []string{locktest.Path, "/locks"} {
		for _, fail := range []bool{false, true} {
			locktest.Run(t, func(e *locktest.Env) {
				var w locktest.Witness
				g := e.Lock(e.New())
				w.Saw(e.T, g)
				var opts []recipes.Option
				if fail {
					opts = append(opts, recipes.FailOnLoss())
				}
				s := e.Open()
				var waiting []*locktest.Attempt
				for i := range 6 {
					m := e.Mutex(s, opts...)
					if i%2 == 0 {
						m = e.New(opts...)
					}
					waiting = append(waiting, e.Start(m.Lock))
					e.Queued(i + 2)
				}
				e.DeleteAll(path)
				<-g.Done()
				if !errors.Is(g.Err(), recipes.ErrNodeDeleted) {
					t.Error(g.Err())
				}
				if fail {
					for _, a := range waiting {
						a.Fails(time.Second, recipes.ErrNodeDeleted)
					}
					e.Release(e.Lock(e.New()))
					return
				}
				var wg sync.WaitGroup
				for _, a := range waiting {
					wg.Go(func() {
						g, err := a.Result()
						if err != nil {
							t.Error(err)
							return
						}
						w.Saw(t, g)
						time.Sleep(time.Second)
						e.Release(g)
					})
				}
				wg.Wait()
				if w.Count() != 7 {
					t.Errorf("%d grants", w.Count())
				}
				e.Empty()
			})
		}
	}
}

// case 45: what a callback does is its own affair.
func TestCallbackBlocksPanicsOrCallsBack(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		var m interface {
			recipes.Lockable
		}
		var g *recipes.Grant
		block := make(chan struct{})
		relocked, released, other := make(chan *recipes.Grant, 1), make(chan error, 1), make(chan error, 1)
		m = e.Mutex(s,
			recipes.OnRevoke(func(recipes.Revocation) { <-block }),
			recipes.OnRevoke(func(recipes.Revocation) { panic("a fault of the user's") }),
			recipes.OnRevoke(func(recipes.Revocation) { released <- g.Release(e.T.Context()) }),
			recipes.OnRevoke(func(recipes.Revocation) { relocked <- e.Lock(e.Mutex(s)) }),
		)
		m2 := e.MutexAt(s, "/locks/y", recipes.OnRevoke(func(r recipes.Revocation) { other <- r.Cause }))
		g = e.Lock(m)
		g2 := e.Lock(m2)
		e.Expire(s.ID())
		if err := locktest.Await(e, released); !errors.Is(err, recipes.ErrRevoked) {
			t.Error(err)
		}
		if err := locktest.Await(e, other); !errors.Is(err, recipes.ErrSessionLost) || g2.Err() == nil {
			t.Error(err)
		}
		e.Release(locktest.Await(e, relocked))
		close(block)
	})
}

// case 45
func TestCallbackClosesTheSession(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		closed := make(chan error, 1)
		g := e.Lock(e.Mutex(s, recipes.OnRevoke(func(recipes.Revocation) { closed <- s.Close() })))
		e.Delete(nodeOf(e, g))
		if err := locktest.Await(e, closed); err != nil {
			t.Error(err)
		}
	})
}

// case 51
func TestSessionIsClosedWhileHolding(t *testing.T) {
	for _, delay := range []bool{false, true} {
		locktest.Run(t, func(e *locktest.Env) {
			opts := []recipes.Option{}
			if delay {
				opts = append(opts, recipes.LockDelay(time.Hour))
			}
			s := e.Open()
			m := e.Mutex(s, opts...)
			g := e.Lock(m)
			mine := e.Start(e.Mutex(s).Lock)
			e.Queued(2)
			next := e.Start(e.New().Lock)
			e.Queued(3)
			done := make(chan error, 1)
			go func() { // asked at the very moment of the end, too, it must be right
				for g.Err() == nil {
					time.Sleep(time.Microsecond)
				}
				done <- g.Err()
			}()
			start := time.Now()
			s.Close()
			if err := locktest.Await(e, done); !errors.Is(err, recipes.ErrSessionClosed) {
				t.Errorf("Err is %v", err)
			}
			mine.Fails(100*time.Millisecond, recipes.ErrSessionClosed)
			if took := time.Since(start); took > 100*time.Millisecond {
				t.Errorf("closing took %v", took)
			}
			e.Release(next.Grant(100 * time.Millisecond)) // no lock delay: nobody died
			e.Start(m.Lock).Fails(time.Second, recipes.ErrSessionClosed)
			e.Start(m.TryLock).Fails(time.Second, recipes.ErrSessionClosed)
			if _, err := m.Contenders(e.T.Context()); !errors.Is(err, recipes.ErrSessionClosed) {
				t.Error(err)
			}
		})
	}
}

// case 49, case 57: the lock directory was made anew while a session was lost. The
// next contender must not get a name that one of the old directory had, or a write
// that is guarded by the old name would go through.
func TestNameDoesNotComeBackAfterALoss(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		m := e.Mutex(s)
		old := nodeOf(e, e.Lock(m))
		e.Expire(s.ID())
		e.DeleteAll(locktest.Path)
		e.Release(e.Lock(e.New()))
		var mu sync.Mutex
		e.OnRequest(func(r zktest.Request) {
			mu.Lock()
			defer mu.Unlock()
			if r.Op == zktest.OpCreate2 && strings.HasPrefix(old, r.Path) {
				t.Errorf("a contender is made with the prefix %s, of the directory before", r.Path)
			}
		})
		e.Release(e.Lock(m))
	})
}
