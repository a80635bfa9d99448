package rwlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/zktest"
)

const delay = 30 * time.Second

// A writer with a lock delay dies: whoever is next waits, many readers as well as a
// writer, once.
func TestWriterWithLockDelayDies(t *testing.T) {
	for _, next := range []string{"w", "r", "rrrrrrrrrrw", "rwr"} {
		for _, waiting := range []bool{true, false} {
			for _, expired := range []bool{true, false} {
				run(t, func(e *env) {
					s := e.Open()
					g := e.write(e.rw(s, recipes.LockDelay(delay)))
					others := e.own()
					var as []*locktest.Attempt
					arrive := func() {
						for _, c := range next {
							lock := others.RLock
							if c == 'w' {
								lock = others.Lock
							}
							as = append(as, e.Start(lock))
							time.Sleep(time.Millisecond)
						}
					}
					if waiting {
						arrive()
					}
					time.Sleep(5 * time.Minute)
					died := time.Now()
					if expired {
						e.Expire(s.ID())
					} else {
						e.Delete(node(g))
					}
					<-g.Done()
					if !waiting {
						arrive()
					}
					for _, try := range []acquire{e.own().TryLock, e.own().TryRLock} {
						if _, err := try(e.T.Context()); !errors.Is(err, recipes.ErrBusy) {
							t.Errorf("meanwhile: %v", err)
						}
					}
					for i, a := range as {
						g := a.Grant(time.Minute)
						if d := time.Since(died); d < delay || d > delay+time.Second {
							t.Errorf("%s %d: granted after %v", next, i, d)
						}
						e.Release(g)
					}
					start := time.Now()
					e.Release(e.read(others)) // once
					e.Release(e.write(others))
					if d := time.Since(start); d > time.Second {
						t.Errorf("and again %v", d)
					}
					e.Empty() // what kept the record is gone, too
				})
			}
		}
	}
}

// After the delay only readers come: they take it out of the record, so that later
// ones neither wait nor write, and the directory is removed when it is no longer used.
func TestOnlyReadersComeAfterTheLockDelay(t *testing.T) {
	run(t, func(e *env) {
		g := e.write(e.own(recipes.LockDelay(delay)))
		e.Delete(node(g))
		<-g.Done()
		l := e.own()
		g = e.read(l)
		before, _ := e.Stat(locktest.Path)
		e.Release(e.read(e.own()))
		if after, _ := e.Stat(locktest.Path); after.Version != before.Version {
			t.Errorf("the record was written %d times", after.Version-before.Version)
		}
		e.Release(g)
		e.Empty()
		time.Sleep(3 * time.Minute)
		if e.Exists(locktest.Path) {
			t.Errorf("the directory stays\n%s", e.Tree())
		}
	})
}

// No delay: for readers that die, for a release, for a reader let in under a
// writer, for a writer that gave up.
func TestNoLockDelay(t *testing.T) {
	for name, leave := range map[string]func(e *env, opt recipes.Option){
		"reader dies": func(e *env, opt recipes.Option) {
			g := e.read(e.own(opt))
			e.Delete(node(g))
			<-g.Done()
		},
		"reader is revoked": func(e *env, opt recipes.Option) { <-e.read(e.own(opt, recipes.MaxHold(time.Second))).Done() },
		"released":          func(e *env, opt recipes.Option) { e.Release(e.write(e.own(opt))) },
		"downgraded": func(e *env, opt recipes.Option) {
			l := e.own(opt)
			w := e.write(l)
			r := e.under(l, w)
			e.Release(w)
			e.Delete(node(r))
			<-r.Done()
		},
		"downgraded, the writer last": func(e *env, opt recipes.Option) {
			l := e.own(opt)
			w := e.write(l)
			e.Release(e.under(l, w))
			e.Release(w)
		},
		"writer waited only": func(e *env, opt recipes.Option) {
			g := e.read(e.own())
			a := e.later(e.own(opt).Lock, 2)
			e.Delete(e.nodeWith("__WRIT__"))
			e.Queued(2) // it queued again
			a.Cancel()
			e.Release(g)
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(e *env) {
				leave(e, recipes.LockDelay(time.Hour))
				e.Empty()
				start := time.Now()
				for _, try := range []acquire{e.own().TryRLock, e.own().TryLock} {
					e.Release(e.Start(try).Grant(time.Minute))
				}
				if d := time.Since(start); d > time.Second {
					t.Errorf("granted after %v", d)
				}
			})
		})
	}
}

// A writer with a lock delay is revoked while a reader that was let in under it goes
// on: other readers wait for the delay, a writer for that and the readers.
func TestWriterWithLockDelayIsRevokedAboveItsReader(t *testing.T) {
	for _, n := range []int{1, 2, 5, -1, -5} { // negative: answers are lost
		run(t, func(e *env) {
			lost := n < 0
			n := max(n, -n)
			l := e.own(recipes.LockDelay(delay))
			w := e.write(l)
			var readers []*locktest.Attempt
			for i := range n {
				readers = append(readers, e.later(e.own().RLock, i+2))
			}
			next := e.later(e.own().Lock, n+2) // before the reader is let in: it has not seen it
			r := e.under(e.own(), w)
			died := time.Now()
			if lost { // of what the readers write, answers are lost
				for _, n := range []int{1, 4, 7, 9} {
					e.LoseReply(zktest.OpMulti, n)
				}
			}
			e.Delete(node(w))
			<-w.Done()
			var held []*recipes.Grant
			for _, a := range readers {
				held = append(held, a.Grant(time.Minute))
				if d := time.Since(died); d < delay || d > delay+3*time.Second {
					t.Errorf("granted after %v", d)
				}
			}
			for _, g := range held {
				e.waits(next)
				e.Release(g)
			}
			e.waits(next)
			if r.Err() != nil {
				t.Error(r.Err())
			}
			e.Release(r)
			e.Release(next.Grant(time.Second))
			e.Empty()
		})
	}
}

// A reader notes the death just when another, who has waited for the delay, takes it
// out of the record: it neither waits for the delay again nor puts it back.
func TestReaderComesAtTheEndOfTheLockDelay(t *testing.T) {
	run(t, func(e *env) {
		first, late := e.own(), e.own()
		for _, l := range []*rwlock.RWLock{first, late} { // each session has held once
			e.Release(e.read(l))
		}
		w := e.write(e.own(recipes.LockDelay(delay)))
		e.Delete(node(w))
		<-w.Done()
		a := e.Start(first.RLock)
		time.Sleep(delay - time.Millisecond)
		arrived, let := e.HoldRequest(zktest.OpMulti, 1)
		b := e.Start(late.RLock)
		locktest.Await(e.Env, arrived)
		g := a.Grant(time.Second)
		let()
		e.Release(b.Grant(time.Second))
		e.Release(g)
		if data, _ := e.Data(locktest.Path); strings.Contains(string(data), "died") || strings.Contains(string(data), "holder") {
			t.Errorf("the record is %q", data)
		}
		e.Empty()
	})
}
