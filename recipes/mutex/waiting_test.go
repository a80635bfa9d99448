package mutex_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// nodeOf returns the path of the node with g's token.
func nodeOf(e *locktest.Env, g *recipes.Grant) string {
	for _, name := range e.Children(locktest.Path) {
		if st, ok := e.Stat(locktest.Path + "/" + name); ok && recipes.Token(st.Czxid) == g.Token() {
			return locktest.Path + "/" + name
		}
	}
	e.T.Fatalf("no node with token %v", g.Token())
	return ""
}

// nodeAt returns the path of the n-th contender's node.
func nodeAt(e *locktest.Env, n int) string {
	names := e.Children(locktest.Path)
	if n >= len(names) {
		e.T.Fatalf("only %q in the queue", names)
	}
	return locktest.Path + "/" + names[n]
}

// case 14: the one ahead goes between our create and our watch.
func TestPredecessorGoesBeforeItIsWatched(t *testing.T) {
	for name, end := range map[string]func(e *locktest.Env, g *recipes.Grant){
		"released": func(e *locktest.Env, g *recipes.Grant) { e.Release(g) },
		"deleted":  func(e *locktest.Env, g *recipes.Grant) { e.Delete(nodeOf(e, g)) },
	} {
		for nth := 1; nth <= 3; nth++ { // own node, directory, the one ahead
			t.Run(name, func(t *testing.T) {
				locktest.Run(t, func(e *locktest.Env) {
					m := e.New()
					g := e.Lock(e.New())
					arrived, release := e.HoldRequest(zktest.OpGetData, nth)
					a := e.Start(e.Mutex(e.Open()).Lock)
					if nth == 1 { // its first one asks for the directory
						release()
						arrived, release = e.HoldRequest(zktest.OpGetData, 1)
					}
					locktest.Await(e, arrived)
					end(e, g)
					release()
					e.Release(a.Grant(time.Second))
					e.Release(e.Lock(m))
				})
			})
		}
	}
}

// case 16
func TestWaiterInTheMiddleDies(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		sb := e.Open()
		g := e.Lock(e.New())
		b := e.Start(e.Mutex(sb, recipes.FailOnLoss()).Lock)
		e.Queued(2)
		c := e.Start(e.New().Lock)
		e.Queued(3)
		e.Expire(sb.ID())
		b.Fails(5*time.Second, recipes.ErrSessionLost)
		time.Sleep(time.Minute)
		if !c.Pending() || g.Err() != nil {
			t.Fatalf("pending %v, held %v", c.Pending(), g.Err())
		}
		e.Release(g)
		e.Release(c.Grant(time.Second))
	})
}

// case 17: own node deleted at each step before the grant.
func TestOwnNodeIsDeletedBeforeTheGrant(t *testing.T) {
	for _, fail := range []bool{false, true} {
		for _, held := range []bool{false, true} {
			for step := 1; step <= 6; step++ {
				locktest.Run(t, func(e *locktest.Env) {
					s, opts := e.Open(), []recipes.Option(nil)
					if fail {
						opts = append(opts, recipes.FailOnLoss())
					}
					m := e.Mutex(s, opts...)
					e.Release(e.Lock(m))
					e.Empty()
					var g *recipes.Grant
					if held {
						g = e.Lock(e.New())
					}
					n, deleted := 0, ""
					e.OnRequest(func(r zktest.Request) {
						if r.Session != s.ID() || r.Op == zktest.OpPing || deleted != "" {
							return
						}
						if n++; n != step {
							return
						}
						for _, name := range e.Children(locktest.Path) {
							if st, _ := e.Stat(locktest.Path + "/" + name); st.EphemeralOwner == s.ID() {
								deleted = locktest.Path + "/" + name
							}
						}
						e.Delete(deleted)
					})
					a := e.Start(m.Lock)
					time.Sleep(time.Second)
					if held {
						e.Release(g)
					}
					mine, err := a.Result()
					e.OnRequest(nil)
					time.Sleep(time.Second)
					switch {
					case deleted == "":
					case err != nil:
						if !fail || !errors.Is(err, recipes.ErrNodeDeleted) {
							t.Errorf("step %d: %v", step, err)
						}
					case mine.Err() == nil && !e.Exists(nodeOf(e, mine)):
						t.Errorf("step %d: held without a node", step)
					}
					if err == nil && mine.Err() == nil {
						e.Release(mine)
					}
					e.Empty()
				})
			}
		}
	}
}

// case 18
func TestWaiterLosesItsSession(t *testing.T) {
	for name, lose := range map[string]func(e *locktest.Env, s *session.Session){
		"expired":  func(e *locktest.Env, s *session.Session) { e.Expire(s.ID()) },
		"cut off":  func(e *locktest.Env, s *session.Session) { e.BlackHole(s.ID(), zktest.Both) },
		"replaced": func(e *locktest.Env, s *session.Session) { e.AnswerResumeWith(42); e.Cut(s.ID()) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) {
				s := e.Open()
				g := e.Lock(e.New())
				fails := e.Start(e.Mutex(s, recipes.FailOnLoss()).Lock)
				stays := e.Start(e.Mutex(s).Lock)
				e.Queued(3)
				lost := make(chan time.Time, 1)
				go func() {
					for st := range s.States(e.T.Context()) {
						if st == session.Lost {
							lost <- time.Now()
							return
						}
					}
				}()
				synctest.Wait()
				lose(e, s)
				fails.Fails(time.Minute, recipes.ErrSessionLost)
				if late := time.Since(locktest.Await(e, lost)); late > 100*time.Millisecond {
					t.Errorf("failed %v after the loss was known", late)
				}
				e.Heal()
				if name == "replaced" {
					e.Expire(42)
				}
				time.Sleep(20 * time.Second)
				if !stays.Pending() {
					t.Error("the one without FailOnLoss does not wait")
				}
				e.Release(g)
				e.Release(stays.Grant(time.Second))
				e.Empty()
			})
		})
	}
}

// case 19, case 23
func TestConnectionIsLostWhileWaiting(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		holder, waiter, later := e.New(), e.Mutex(s), e.New()
		for range 50 {
			g := e.Lock(holder)
			a := e.Start(waiter.Lock)
			e.Queued(2)
			place := nodeAt(e, 1)
			b := e.Start(later.Lock)
			e.Queued(3)
			e.Refuse(true)
			e.Cut(s.ID())
			time.Sleep(500 * time.Millisecond)
			e.Release(g)
			time.Sleep(500 * time.Millisecond)
			e.Refuse(false)
			g = a.Grant(2 * time.Second)
			if got := nodeOf(e, g); got != place || !b.Pending() {
				t.Errorf("place %s, was %s; later one waits: %v", got, place, b.Pending())
			}
			e.Release(g)
			e.Release(b.Grant(time.Second))
		}
	})
}

// case 28: an event for a contender that has moved on is no event for it.
func TestEventsThatComeLateAreIgnored(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		a, b := e.New(), e.New()
		g := e.Lock(a)
		waits := e.Start(b.Lock)
		e.Queued(2)
		for range 5 { // changed, not gone
			e.Set(nodeOf(e, g), []byte("touched"))
			data, _ := e.Data(locktest.Path)
			e.Set(locktest.Path, data)
			e.Set(nodeAt(e, 1), []byte("touched"))
			time.Sleep(time.Second)
			if !waits.Pending() || g.Err() != nil {
				t.Fatalf("pending %v, held %v", waits.Pending(), g.Err())
			}
		}
		e.Release(g)
		g = waits.Grant(time.Second)
		e.Set(nodeOf(e, g), []byte("touched"))
		time.Sleep(time.Minute)
		if g.Err() != nil {
			t.Error(g.Err())
		}
		e.Release(g)
		// The same connection goes on waiting for the same lock, cancelled in between.
		g = e.Lock(a)
		for range 3 {
			w := e.Start(b.Lock)
			e.Queued(2)
			w.Cancel()
			w.Fails(time.Second, context.Canceled)
		}
		w := e.Start(b.Lock)
		e.Queued(2)
		e.Release(g)
		e.Release(w.Grant(time.Second))
	})
}
