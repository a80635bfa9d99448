package rwlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

type acquire = func(context.Context) (*recipes.Grant, error)

func TestReadersShareAndAWriterIsAlone(t *testing.T) {
	run(t, func(e *env) {
		a, b := e.own(), e.own()
		r1, r2, r3 := e.read(a), e.read(a), e.read(b)
		w := e.later(b.Lock, 4)
		e.waits(w)
		for _, g := range []*recipes.Grant{r2, r1} {
			e.Release(g)
			e.waits(w)
		}
		e.Release(r3)
		g := w.Grant(time.Second)
		r, w2 := e.later(a.RLock, 2), e.later(b.Lock, 3)
		e.waits(r, w2)
		e.Release(g)
		g = r.Grant(time.Second)
		e.waits(w2)
		e.Release(g)
		e.Release(w2.Grant(time.Second))
		e.Empty()
	})
}

// case 61: a writer holds, a reader waits, then a writer: the reader does not wait
// for the writer behind it.
func TestReaderDoesNotWaitForALaterWriter(t *testing.T) {
	run(t, func(e *env) {
		a, b := e.own(), e.own()
		w1 := e.write(a)
		r2 := e.later(b.RLock, 2)
		w3 := e.later(a.Lock, 3)
		e.waits(r2, w3)
		e.Release(w1)
		g := r2.Grant(time.Second)
		e.waits(w3)
		e.Release(g)
		e.Release(w3.Grant(time.Second))
	})
}

// case 62: no writer while anybody reads, not even in the same process.
func TestNoWriterWhileOneReads(t *testing.T) {
	run(t, func(e *env) {
		a, b := e.own(), e.own()
		r := e.read(a)
		for _, l := range []*rwlock.RWLock{a, b} {
			if _, err := l.TryLock(e.T.Context()); !errors.Is(err, recipes.ErrBusy) {
				t.Error(err)
			}
		}
		w := e.later(a.Lock, 2)
		e.waits(w)
		e.Release(r)
		e.Release(w.Grant(time.Second))
	})
}

// case 63: readers that keep coming don't starve a writer: it is granted when those
// ahead have gone, and nobody who comes later passes it.
func TestReadersKeepComing(t *testing.T) {
	run(t, func(e *env) {
		var locks []*rwlock.RWLock
		for range 4 {
			locks = append(locks, e.own())
		}
		var w witness
		var wg sync.WaitGroup
		ctx, stop := context.WithCancel(e.T.Context())
		for i := range 12 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				for ctx.Err() == nil {
					g, err := locks[i%4].RLock(ctx)
					if err != nil {
						continue
					}
					w.saw(e.T, g, false)
					time.Sleep(10 * time.Millisecond)
					if err := g.Release(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 50 {
			time.Sleep(20 * time.Millisecond)
			a := e.Start(locks[0].Lock)
			g := a.Grant(time.Second)
			// Those that hold when it queues hold for 10ms at most.
			if d := a.Took(); d > 15*time.Millisecond {
				t.Errorf("a writer waited for %v", d)
			}
			w.saw(e.T, g, true)
			time.Sleep(5 * time.Millisecond)
			e.Release(g)
		}
		stop()
		wg.Wait()
		if w.count < 500 {
			t.Errorf("%d grants", w.count)
		}
		e.Empty()
	})
}

// case 25: the release of a writer wakes all readers that waited for it, by one
// event for each session, and no writer behind them; that of a reader wakes one
// writer, or nobody.
func TestWhoIsWokenByARelease(t *testing.T) {
	run(t, func(e *env) {
		locks := []*rwlock.RWLock{e.own(), e.own(), e.own()}
		writers := []*rwlock.RWLock{e.own(), e.own()}
		g := e.write(locks[0])
		var readers []*locktest.Attempt
		for i := range 12 {
			readers = append(readers, e.later(locks[i%3].RLock, i+2))
		}
		w1, w2 := e.later(writers[0].Lock, 14), e.later(writers[1].Lock, 15)
		late := e.later(locks[0].RLock, 16)
		e.waits(w1, w2, late)

		e.ResetCounts()
		e.Release(g)
		var held []*recipes.Grant
		for _, r := range readers {
			held = append(held, r.Grant(time.Second))
		}
		synctest.Wait()
		// The watch that a holder has on its own node is that of its session's readers.
		if c := e.Requests(); c.Events != 3 || e.listings() > 0 {
			t.Errorf("%d events, %d listings", c.Events, e.listings())
		}
		for i, g := range held {
			e.ResetCounts()
			e.Release(g)
			synctest.Wait()
			want := int64(1) // its own watch, and for the last one, w1's
			if i == len(held)-1 {
				want = 2
			}
			if c := e.Requests(); c.Events > want || e.listings() > 1 {
				t.Errorf("reader %d: %d events, %d listings", i, c.Events, e.listings())
			}
		}
		g = w1.Grant(time.Second)
		e.waits(w2, late)
		e.Release(g)
		e.Release(w2.Grant(time.Second))
		e.Release(late.Grant(time.Second))
	})
}

// What TryLock and TryRLock find, and that they write nothing if it is in the way.
func TestTry(t *testing.T) {
	for name, c := range map[string]struct {
		prepare     func(e *env, l *rwlock.RWLock) []*locktest.Attempt
		write, read bool // is it to be had?
	}{
		"free": {func(e *env, l *rwlock.RWLock) []*locktest.Attempt { return nil }, true, true},
		"free, was read": {func(e *env, l *rwlock.RWLock) []*locktest.Attempt {
			e.Release(e.read(l))
			return nil
		}, true, true},
		"read": {func(e *env, l *rwlock.RWLock) []*locktest.Attempt {
			return []*locktest.Attempt{e.later(l.RLock, 1)}
		}, false, true},
		"read by many": {func(e *env, l *rwlock.RWLock) (as []*locktest.Attempt) {
			for i := range 50 {
				as = append(as, e.later(l.RLock, i+1))
			}
			return as
		}, false, true},
		"written": {func(e *env, l *rwlock.RWLock) []*locktest.Attempt {
			return []*locktest.Attempt{e.later(l.Lock, 1)}
		}, false, false},
		"written, many wait": {func(e *env, l *rwlock.RWLock) (as []*locktest.Attempt) {
			for i := range 50 {
				as = append(as, e.later(l.Lock, i+1))
			}
			return as
		}, false, false},
		"read, a writer waits": {func(e *env, l *rwlock.RWLock) []*locktest.Attempt {
			return []*locktest.Attempt{e.later(l.RLock, 1), e.later(l.Lock, 2)}
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(e *env) {
				l := e.own()
				others := c.prepare(e, e.own())
				for side, try := range map[string]struct {
					lock acquire
					free bool
				}{"write": {l.TryLock, c.write}, "read": {l.TryRLock, c.read}} {
					zxid := e.Zxid()
					a := e.Start(try.lock)
					if try.free {
						e.Release(a.Grant(time.Second))
						continue
					}
					a.Fails(time.Second, recipes.ErrBusy)
					if e.Zxid() != zxid {
						t.Errorf("%s: something was written", side)
					}
				}
				for _, a := range others {
					e.Release(a.Grant(time.Second))
				}
			})
		})
	}
}

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
