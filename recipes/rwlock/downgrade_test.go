package rwlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/guard"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// under reads under a write grant, which must be granted at once.
func (e *env) under(l *rwlock.RWLock, w *recipes.Grant) *recipes.Grant {
	e.T.Helper()
	return e.StartContext(w.Context(e.T.Context()), l.RLock).Grant(time.Second)
}

// How a write grant can end before the reader that was let in under it.
var ends = map[string]func(e *env, w *recipes.Grant){
	"released": func(e *env, w *recipes.Grant) { e.Release(w) },
	"removed": func(e *env, w *recipes.Grant) {
		e.Delete(node(w))
		<-w.Done()
	},
	"held too long": func(e *env, w *recipes.Grant) { <-w.Done() },
	"released, answers lost": func(e *env, w *recipes.Grant) {
		e.LoseReply(zktest.OpMulti, 1)
		e.LoseRequest(zktest.OpMulti, 2)
		e.Release(w)
	},
}

// case 62: who writes goes on reading, and outlives the write grant: readers behind
// it get in, writers wait, wherever in the line they are.
func TestDowngrade(t *testing.T) {
	for name, end := range ends {
		for _, line := range []string{"", "w", "r", "rw", "wr", "rrww", "wrw", strings.Repeat("w", 40), strings.Repeat("r", 40) + "w"} {
			if len(line) > 10 && name != "released" {
				continue
			}
			t.Run(name+" "+line, func(t *testing.T) {
				run(t, func(e *env) {
					a := e.own()
					if name == "held too long" {
						a = e.own(recipes.MaxHold(10 * time.Minute))
					}
					w := e.write(a)
					others := []*rwlock.RWLock{e.own(), e.own(), e.own()}
					var waiting []*locktest.Attempt
					for i, c := range line {
						l := others[i%3]
						lock := l.RLock
						if c == 'w' {
							lock = l.Lock
						}
						waiting = append(waiting, e.later(lock, i+2))
					}
					start := time.Now()
					r := e.under(e.rw(e.Open()), w) // whatever object is asked
					if d := time.Since(start); d > 100*time.Millisecond {
						t.Errorf("granted after %v", d)
					}
					if r.Token() != w.Token() {
						t.Errorf("token %v under %v", r.Token(), w.Token())
					}
					e.waits(waiting...)
					end(e, w)
					time.Sleep(time.Second)
					// Readers up to the first writer hold now.
					var held []*recipes.Grant
					for i, c := range line {
						if c == 'w' {
							e.waits(waiting[i:]...)
							break
						}
						held = append(held, waiting[i].Grant(time.Millisecond))
					}
					if r.Err() != nil {
						t.Fatal(r.Err())
					}
					if err := r.Verify(e.T.Context()); err != nil {
						t.Error(err)
					}
					late := e.later(e.own().RLock, len(line)+2)
					if strings.Contains(line, "w") {
						e.waits(late)
					}
					e.Release(r)
					for _, g := range held {
						e.Release(g)
					}
					for _, a := range append(waiting[len(held):], late) {
						e.Release(a.Grant(time.Minute))
					}
					e.Empty()
				})
			})
		}
	}
}

// Each ends by itself, in any order, and several readers are let in.
func TestSeveralReadersUnderOneWriter(t *testing.T) {
	run(t, func(e *env) {
		a, b := e.own(), e.own()
		w := e.write(a)
		r1 := e.under(a, w)
		r2 := e.StartContext(w.Context(e.T.Context()), a.TryRLock).Grant(time.Second)
		next := e.later(b.Lock, 4)
		e.Release(r1)
		e.waits(next)
		cs, err := b.Contenders(e.T.Context())
		if err != nil || len(cs) != 3 || !cs[0].Holding || !cs[1].Holding || cs[2].Holding ||
			cs[0].Token != w.Token() || cs[1].Token != w.Token() {
			t.Errorf("%+v, %v", cs, err)
		}
		e.Release(w)
		e.waits(next)
		// Read without asking the server again; not the other way round.
		if _, err := a.RLock(r2.Context(e.T.Context())); !errors.Is(err, recipes.ErrDeadlock) {
			t.Error(err)
		}
		if _, err := a.Lock(r2.Context(e.T.Context())); !errors.Is(err, recipes.ErrUpgrade) {
			t.Error(err)
		}
		r3 := e.StartContext(r2.Context(e.T.Context()), e.rw(e.Open(), recipes.Reentrant()).RLock).Grant(time.Second)
		e.Release(r2)
		e.waits(next)
		e.Release(r3)
		g := next.Grant(time.Second)
		if g.Token() <= r3.Token() {
			t.Errorf("a writer's token is %v after %v", g.Token(), r3.Token())
		}
		e.Release(g)
		e.Empty()
	})
}

// The session goes: writer and reader with it. The reader's node goes: the reader
// only.
func TestSessionOfAWriterAndItsReaderEnds(t *testing.T) {
	for name, c := range map[string]struct {
		lose   func(e *env, s *session.Session, r *recipes.Grant)
		reason error
		both   bool
	}{
		"expired": {func(e *env, s *session.Session, r *recipes.Grant) { e.Expire(s.ID()) }, recipes.ErrSessionLost, true},
		"cut off": {func(e *env, s *session.Session, r *recipes.Grant) { e.BlackHole(s.ID(), zktest.Both) }, recipes.ErrSessionLost, true},
		"closed":  {func(e *env, s *session.Session, r *recipes.Grant) { s.Close() }, recipes.ErrSessionClosed, true},
		"removed": {func(e *env, s *session.Session, r *recipes.Grant) { e.Delete(node(r)) }, recipes.ErrNodeDeleted, false},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(e *env) {
				s := e.Open()
				a := e.rw(s)
				w := e.write(a)
				r := e.under(a, w)
				next := e.later(e.own().Lock, 3)
				c.lose(e, s, r)
				<-r.Done()
				if !errors.Is(r.Err(), c.reason) {
					t.Error(r.Err())
				}
				if c.both {
					<-w.Done()
				} else {
					e.waits(next)
					e.Release(w)
				}
				e.Release(next.Grant(time.Minute))
				e.Heal()
				e.Empty()
			})
		})
	}
}

// What a downgrade leaves in the record does not confuse those who come after it.
func TestAfterADowngrade(t *testing.T) {
	run(t, func(e *env) {
		a, b := e.own(), e.own()
		for range 3 {
			w := e.write(a)
			r := e.under(a, w)
			e.Release(w)
			if _, err := b.TryLock(e.T.Context()); !errors.Is(err, recipes.ErrBusy) {
				t.Error(err)
			}
			e.Release(e.Start(b.TryRLock).Grant(time.Second))
			e.Release(r)
			e.Release(e.Start(b.TryLock).Grant(time.Second))
		}
		e.Empty()
	})
}

// Where the directory's data is somebody else's, nobody leaves marks.
func TestDowngradeWithoutMarks(t *testing.T) {
	run(t, func(e *env) {
		e.Create(locktest.Path, []byte("127.0.0.1:80"))
		a := e.own()
		w := e.write(a)
		r2, w2 := e.later(e.own().RLock, 2), e.later(e.own().Lock, 3)
		w3 := e.later(e.own().Lock, 4)
		r := e.under(a, w)
		e.Release(w)
		g := r2.Grant(time.Second)
		e.waits(w2, w3)
		e.Release(g)
		e.waits(w2, w3)
		e.Release(r)
		g = w2.Grant(time.Second)
		e.waits(w3)
		e.Release(g)
		e.Release(w3.Grant(time.Second))
		e.Empty()
	})
}

// A guarded write touches the contender's node; what that says stays as it is.
func TestGuardedWriteOfAReaderUnderAWriter(t *testing.T) {
	run(t, func(e *env) {
		l := e.own(recipes.Owner("both"))
		w := e.write(l)
		r, err := l.RLock(w.Context(e.T.Context()))
		if err != nil {
			t.Fatal(err)
		}
		before, _ := e.Data(node(r))
		e.Create("/value", nil)
		if _, err := guard.Multi(e.T.Context(), r, &zk.SetDataRequest{Path: "/value", Data: []byte("new"), Version: -1}); err != nil {
			t.Fatal(err)
		}
		if after, _ := e.Data(node(r)); string(after) != string(before) {
			t.Errorf("the reader's node said %s, and says %s", before, after)
		}
		e.Release(w)
		cs, err := l.Contenders(e.T.Context())
		if err != nil || len(cs) != 1 || cs[0].Owner != "both" || cs[0].Token != r.Token() {
			t.Errorf("%+v, %v: want the reader, with the token %v", cs, err, r.Token())
		}
		e.Release(r)
	})
}
