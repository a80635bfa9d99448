package rwlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 16: those in the middle go: who waited for them waits for the next one
// before, or gets in.
func TestContendersInTheMiddleGo(t *testing.T) {
	for name, leave := range map[string]func(e *env, s *session.Session, a *locktest.Attempt){
		"give up": func(e *env, s *session.Session, a *locktest.Attempt) {
			a.Cancel()
			a.Fails(time.Second, context.Canceled)
		},
		"die": func(e *env, s *session.Session, a *locktest.Attempt) {
			e.Expire(s.ID())
			a.Fails(time.Minute, recipes.ErrSessionLost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(e *env) {
				a := e.own()
				goes := func(n int, write bool) (*session.Session, *locktest.Attempt) {
					s := e.Open()
					l := e.rw(s, recipes.FailOnLoss())
					lock := l.RLock
					if write {
						lock = l.Lock
					}
					return s, e.later(lock, n)
				}
				w1 := e.write(a)
				sr, ar := goes(2, false) // a reader
				w2 := e.later(e.own().Lock, 3)
				sw, aw := goes(4, true) // a writer
				r := e.later(e.own().RLock, 5)
				w3 := e.later(e.own().Lock, 6)
				leave(e, sr, ar)
				leave(e, sw, aw)
				e.waits(w2, r, w3)
				e.Release(w1)
				g := w2.Grant(time.Second)
				e.waits(r, w3)
				e.Release(g)
				g = r.Grant(time.Second)
				e.waits(w3)
				sw, aw = goes(3, true)
				r2 := e.later(e.own().RLock, 4)
				leave(e, sw, aw)
				e.Release(g)
				g = w3.Grant(time.Second)
				e.waits(r2)
				e.Release(g)
				e.Release(r2.Grant(time.Second))
				e.Empty()
			})
		})
	}
}

// A writer waits while another reads; the writer goes, and the reader behind it is
// let in although the first still reads.
func TestWriterBetweenReadersGivesUp(t *testing.T) {
	run(t, func(e *env) {
		a := e.own()
		r1 := e.read(a)
		w := e.later(e.own().Lock, 2)
		r2, r3 := e.later(a.RLock, 3), e.later(e.own().RLock, 4)
		e.waits(w, r2, r3)
		w.Cancel()
		g2, g3 := r2.Grant(time.Second), r3.Grant(time.Second)
		if r1.Err() != nil {
			t.Error(r1.Err())
		}
		for _, g := range []*recipes.Grant{r1, g2, g3} {
			e.Release(g)
		}
	})
}

// case 17, case 65: the own node is deleted, or the session expires, at each step
// before the grant: what is granted has a node of this session.
func TestNodeOrSessionGoesBeforeTheGrant(t *testing.T) {
	for _, write := range []bool{false, true} {
		for _, expire := range []bool{false, true} {
			for step := 1; step <= 7; step++ {
				run(t, func(e *env) {
					s := e.Open()
					l := e.rw(s, recipes.FailOnLoss())
					e.Release(e.write(l))
					e.Empty()
					held := e.read(e.own())
					lock, ahead := l.RLock, e.later(e.own().Lock, 2)
					if write {
						lock = l.Lock
					}
					n, done := 0, false
					e.OnRequest(func(r zktest.Request) {
						if r.Session != s.ID() || r.Op == zktest.OpPing || done {
							return
						}
						if n++; n != step {
							return
						}
						done = true
						if expire {
							go e.Expire(s.ID())
							return
						}
						for _, name := range e.Children(locktest.Path) {
							path := locktest.Path + "/" + name
							if st, _ := e.Stat(path); st.EphemeralOwner == s.ID() {
								e.Delete(path)
							}
						}
					})
					a := e.Start(lock)
					time.Sleep(time.Second)
					e.Release(held)
					e.Release(ahead.Grant(time.Second))
					g, err := a.Result()
					e.OnRequest(nil)
					time.Sleep(time.Second)
					switch {
					case err != nil:
						if !errors.Is(err, recipes.ErrNodeDeleted) && !errors.Is(err, recipes.ErrSessionLost) {
							t.Errorf("step %d: %v", step, err)
						}
					case g.Err() == nil:
						if st, ok := e.Stat(node(g)); !ok || st.EphemeralOwner != s.ID() {
							t.Errorf("step %d: held without a node", step)
						}
						e.Release(g)
					}
					e.Empty()
				})
			}
		}
	}
}

// case 44: the directory is deleted under holders and waiters.
func TestLockDirectoryIsDeleted(t *testing.T) {
	run(t, func(e *env) {
		var w witness
		a := e.own()
		held := []*recipes.Grant{e.read(a), e.read(e.own())}
		var wg sync.WaitGroup
		for i := range 9 {
			l, write := a, i%3 == 0
			if i%2 == 0 {
				l = e.own()
			}
			lock := l.RLock
			if write {
				lock = l.Lock
			}
			at := e.later(lock, i+3)
			wg.Go(func() {
				g, err := at.Result()
				if err != nil {
					t.Error(err)
					return
				}
				w.saw(t, g, write)
				time.Sleep(time.Second)
				e.Release(g)
			})
		}
		e.DeleteAll("/locks")
		for _, g := range held {
			<-g.Done()
			if !errors.Is(g.Err(), recipes.ErrNodeDeleted) {
				t.Error(g.Err())
			}
		}
		wg.Wait()
		e.Empty()
	})
}

// case 17: the node of one that arrives is removed just before it reads the
// directory, in which there is one child then, as if it were alone: the holder's.
func TestOnlyChildIsAnothers(t *testing.T) {
	run(t, func(e *env) {
		s := e.Open()
		l := e.rw(s)
		e.Release(e.write(l))
		held := e.write(e.own())
		removed := false
		e.OnRequest(func(r zktest.Request) {
			if r.Session == s.ID() && r.Op == zktest.OpGetData && !removed {
				removed = true
				for _, name := range e.Children(locktest.Path) {
					if path := locktest.Path + "/" + name; path != node(held) {
						e.Delete(path)
					}
				}
			}
		})
		a := e.Start(l.RLock)
		e.waits(a)
		e.OnRequest(nil)
		if !removed {
			t.Error("nothing was removed")
		}
		e.Release(held)
		e.Release(a.Grant(time.Second))
	})
}

// case 17: the node of a waiter is removed; then those ahead of it go, while another
// has the lock who came later.
func TestWaitersNodeIsRemoved(t *testing.T) {
	run(t, func(e *env) {
		var w witness
		r := e.read(e.own())
		s := e.Open()
		a := e.later(e.rw(s, recipes.FailOnLoss()).Lock, 2)
		b := e.later(e.own().Lock, 3)
		for _, name := range e.Children(locktest.Path) {
			path := locktest.Path + "/" + name
			if st, _ := e.Stat(path); st.EphemeralOwner == s.ID() {
				e.Delete(path)
			}
		}
		e.Release(r)
		w.saw(t, b.Grant(time.Second), true)
		a.Fails(time.Second, recipes.ErrNodeDeleted)
		g, _ := b.Result()
		e.Release(g)
		e.Empty()
	})
}
