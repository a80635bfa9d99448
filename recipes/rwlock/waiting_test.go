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
