package mutex_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 47: the answer is lost, or the request, or the one after.
func TestReplyOfTheReleaseIsLost(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, lose := range []func(*zktest.Server, zktest.Op, int){(*zktest.Server).LoseReply, (*zktest.Server).LoseRequest} {
			locktest.Run(t, func(e *locktest.Env) {
				m := e.New()
				g := e.Lock(m)
				next := e.Start(m.Lock)
				e.Queued(2)
				for i := range n {
					lose(e.Server, zktest.OpMulti, i+1)
				}
				e.Release(g)
				e.Release(next.Grant(time.Second))
				e.Empty()
			})
		}
	}
}

// case 47
func TestReleasedWhileDisconnected(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		m := e.Mutex(s)
		g := e.Lock(m)
		e.Refuse(true)
		e.Cut(s.ID())
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(e.T.Context(), time.Second)
		defer cancel()
		if err := g.Release(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, recipes.ErrRevoked) {
			t.Errorf("Release: %v", err)
		}
		if !errors.Is(g.Err(), recipes.ErrReleased) {
			t.Errorf("Err: %v", g.Err())
		}
		again := e.Start(m.Lock) // must not wait behind what was released
		confirmed := make(chan error, 1)
		go func() { confirmed <- g.Release(e.T.Context()) }()
		e.Refuse(false)
		e.Release(again.Grant(3 * time.Second))
		if err := locktest.Await(e, confirmed); err != nil {
			t.Errorf("the second Release: %v", err)
		}
		e.Empty()
	})
}

// case 47: the session ends before the release could be carried out.
func TestReleasedAndThenTheSessionIsLost(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		m := e.Mutex(s, recipes.OnRevoke(func(r recipes.Revocation) { t.Errorf("revoked after its release: %v", r.Cause) }))
		g := e.Lock(m)
		e.BlackHole(s.ID(), zktest.Both)
		if err := g.Release(e.T.Context()); err != nil { // returns when the session is over
			t.Errorf("Release: %v", err)
		}
		if !errors.Is(g.Err(), recipes.ErrReleased) {
			t.Error(g.Err())
		}
		e.Heal()
		e.Release(e.Lock(m))
		time.Sleep(time.Minute)
	})
}

// Somebody has removed the node, and nobody noticed. That is no release; but where an
// answer was lost it may have been one.
func TestReleaseOfWhatIsGone(t *testing.T) {
	for _, after := range []time.Duration{0, time.Minute} { // before the node is watched, and after that
		locktest.Run(t, func(e *locktest.Env) {
			m := e.New(recipes.OnRevoke(func(r recipes.Revocation) { t.Errorf("revoked after its release: %v", r.Cause) }))
			g := e.Lock(m)
			time.Sleep(after)
			node := nodeOf(e, g)
			e.OnRequest(func(r zktest.Request) { // before anything is heard of it
				if r.Op == zktest.OpDelete || r.Op == zktest.OpMulti {
					e.OnRequest(nil)
					e.Delete(node)
				}
			})
			for range 2 {
				if err := g.Release(e.T.Context()); !errors.Is(err, recipes.ErrRevoked) || !errors.Is(err, recipes.ErrNodeDeleted) {
					t.Errorf("held for %v: %v", after, err)
				}
			}
			err := recipes.Do(e.T.Context(), m.Lock, func(ctx context.Context, g *recipes.Grant) error {
				return e.Delete(nodeOf(e, g))
			})
			if !errors.Is(err, recipes.ErrRevoked) {
				t.Errorf("Do: %v", err)
			}
			g = e.Lock(m)
			e.LoseReply(zktest.OpMulti, 1)
			e.LoseReply(zktest.OpDelete, 1)
			e.Release(g)
		})
	}
}

// case 49: a release that comes late never touches a newer lock, even where
// numbers have begun anew.
func TestOldGrantIsReleasedLate(t *testing.T) {
	for _, deleteDir := range []bool{false, true} {
		locktest.Run(t, func(e *locktest.Env) {
			m := e.New()
			old := e.Lock(m)
			oldNode := nodeOf(e, old)
			if deleteDir {
				e.DeleteAll(locktest.Path)
			} else {
				e.Delete(oldNode)
			}
			<-old.Done()
			g := e.Lock(m)
			if node := nodeOf(e, g); node == oldNode {
				t.Errorf("the name came again: %s", node)
			}
			if g.Token() <= old.Token() {
				t.Errorf("token %v after %v", g.Token(), old.Token())
			}
			for range 3 {
				if err := old.Release(e.T.Context()); !errors.Is(err, recipes.ErrRevoked) {
					t.Errorf("late release: %v", err)
				}
			}
			time.Sleep(time.Minute)
			if err := g.Verify(e.T.Context()); err != nil {
				t.Errorf("the newer grant: %v", err)
			}
			e.Release(g)
			e.Release(g)
		})
	}
}

// case 49: the release is on its way when the directory is removed and made anew.
func TestReleaseIsOvertakenByANewDirectory(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m := e.New()
		g := e.Lock(e.New())
		arrived, release := e.HoldRequest(zktest.OpMulti, 1)
		done := make(chan error, 1)
		go func() { done <- g.Release(e.T.Context()) }()
		locktest.Await(e, arrived)
		e.DeleteAll(locktest.Path)
		newer := e.Lock(m)
		next := e.Start(e.New().Lock)
		e.Queued(2)
		release()
		if err := locktest.Await(e, done); !errors.Is(err, recipes.ErrNodeDeleted) {
			t.Error(err)
		}
		if err := newer.Verify(e.T.Context()); err != nil || !next.Pending() {
			t.Errorf("newer grant: %v, next waits: %v", err, next.Pending())
		}
		e.Release(newer)
		e.Release(next.Grant(time.Second))
	})
}

// Release is idempotent, also when called from everywhere at once.
func TestReleasedConcurrently(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m := e.New()
		for range 20 {
			g := e.Lock(m)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() { e.Release(g) })
			}
			wg.Wait()
			if !errors.Is(g.Err(), recipes.ErrReleased) {
				t.Error(g.Err())
			}
		}
		e.Empty()
	})
}

// case 52, case 53
func TestHammer(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		var w locktest.Witness
		var wg sync.WaitGroup
		sa, sb := e.Open(), e.Open()
		shared := e.Mutex(sa)
		inside := 0 // guarded by the lock, as the race detector sees
		var granted int
		var mu sync.Mutex
		for i := range 24 {
			m := shared
			switch i % 3 {
			case 1:
				m = e.Mutex(sa)
			case 2:
				m = e.Mutex(sb)
			}
			wg.Go(func() {
				for range 8 {
					lock := m.Lock
					if i%4 == 0 {
						lock = m.TryLock
					}
					g, err := lock(e.T.Context())
					if errors.Is(err, recipes.ErrBusy) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					w.Saw(t, g)
					mu.Lock()
					granted++
					inside++
					if inside != 1 {
						t.Errorf("%d inside", inside)
					}
					mu.Unlock()
					time.Sleep(time.Duration(i) * time.Millisecond)
					mu.Lock()
					inside--
					mu.Unlock()
					if err := g.Release(e.T.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if granted != w.Count() || granted < 24*8*3/4 {
			t.Errorf("%d granted", granted)
		}
		e.Empty()
	})
}

// case 11: the session is closed at each moment of a Lock and of a Release. It is
// no death, for which a lock delay would be due.
func TestSessionIsClosedDuringLockAndRelease(t *testing.T) {
	for _, opts := range [][]recipes.Option{nil, {recipes.LockDelay(time.Hour)}} {
		for us := 0; us < 22000; us += 500 {
			locktest.Run(t, func(e *locktest.Env) {
				s := e.Open()
				m := e.Mutex(s, opts...)
				other := e.New()
				e.Release(e.Lock(other))
				e.Delay(3 * time.Millisecond)
				a := e.Start(m.Lock)
				released := make(chan error, 1)
				go func() {
					g, err := a.Result()
					if err == nil {
						err = g.Release(e.T.Context())
					}
					released <- err
				}()
				time.Sleep(time.Duration(us) * time.Microsecond)
				s.Close()
				if err := locktest.Await(e, released); err != nil && !errors.Is(err, recipes.ErrSessionClosed) {
					t.Errorf("at %dµs: %v", us, err)
				}
				if left := e.Children(locktest.Path); len(left) > 0 {
					t.Errorf("closed after %dµs: left behind: %q", us, left)
				}
				e.Delay(0)
				g, err := other.TryLock(e.T.Context())
				if err != nil {
					t.Fatalf("closed after %dµs: the next finds %v\n%s", us, err, e.Tree())
				}
				e.Release(g)
			})
		}
	}
}

// case 11: the session is closed while the request to release waits for the
// connection. It is a release, for which no lock delay is due.
func TestSessionIsClosedWhileReleaseWaitsToBeSent(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		var jam jam
		s := e.Open(func(cfg *session.Config) { cfg.Dial = jam.dial(cfg.Dial) })
		g := e.Lock(e.Mutex(s, recipes.LockDelay(time.Hour)))
		life, err := s.Life(e.T.Context())
		if err != nil {
			e.T.Fatal(err)
		}
		open := jam.begin()
		for range 40 { // more than the client keeps
			go life.Exists(context.Background(), "/any")
		}
		synctest.Wait()
		go g.Release(context.Background())
		synctest.Wait()
		time.AfterFunc(20*time.Millisecond, open)
		s.Close()
		next, err := e.New().TryLock(e.T.Context())
		if err != nil {
			e.T.Fatalf("the next finds %v\n%s", err, e.Tree())
		}
		e.Release(next)
	})
}

// A jam keeps what is written to a connection from getting there.
type jam struct{ over atomic.Pointer[chan struct{}] }

func (j *jam) begin() (end func()) {
	over := make(chan struct{})
	j.over.Store(&over)
	return func() { close(over) }
}

type jammed struct {
	net.Conn
	j *jam
}

func (c jammed) Write(b []byte) (int, error) {
	if over := c.j.over.Load(); over != nil {
		<-*over
	}
	return c.Conn.Write(b)
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

func (j *jam) dial(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return jammed{c, j}, err
	}
}

// case 11: at each moment of a Lock it is given up, and the session closed at once. The
// lock was not had, so nobody has died who had it.
func TestSessionIsClosedAfterLockWasGivenUp(t *testing.T) {
	for us := 0; us < 16000; us += 500 {
		locktest.Run(t, func(e *locktest.Env) {
			s := e.Open()
			other := e.New()
			e.Release(e.Lock(other))
			e.Delay(3 * time.Millisecond)
			a := e.Start(e.Mutex(s, recipes.LockDelay(time.Hour)).Lock)
			time.Sleep(time.Duration(us) * time.Microsecond)
			a.Cancel()
			if g, _ := a.Result(); g != nil {
				g.Release(e.T.Context())
			}
			s.Close()
			e.Delay(0)
			g, err := other.TryLock(e.T.Context())
			if err != nil {
				e.T.Fatalf("given up after %dµs: the next finds %v\n%s", us, err, e.Tree())
			}
			e.Release(g)
		})
	}
}
