package fair_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A reader is somebody who reads Ahead to its end.
type reader struct {
	mu   sync.Mutex
	ns   []int
	err  error
	done chan struct{}
}

func (e env) read(ctx context.Context, x *fair.Ticket) *reader {
	r := &reader{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for n, err := range x.Ahead(ctx) {
			r.mu.Lock()
			if r.err != nil {
				e.T.Errorf("%d, %v after the error %v", n, err, r.err)
			}
			if err == nil {
				r.ns = append(r.ns, n)
			}
			r.err = err
			r.mu.Unlock()
		}
	}()
	synctest.Wait()
	return r
}

func (r *reader) seen() []int {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ns)
}

// ended returns the error that was the last element, if there was one.
func (r *reader) ended(e env) error {
	e.T.Helper()
	locktest.Await(e.Env, r.done)
	return r.err
}

// In a plain queue: at once, when the one just before goes, and 0 in the end.
func TestAheadInThePlainQueue(t *testing.T) {
	run(t, func(e env) {
		g := e.Lock(e.lock())
		a, b, c, x := e.joined(e.lock()), e.joined(e.lock()), e.joined(e.lock()), e.joined(e.lock())
		r := e.read(e.T.Context(), x)
		if got := r.seen(); !slices.Equal(got, []int{4}) {
			t.Fatalf("%v", got)
		}
		e.leave(a) // not the one just before: news only with time
		if got := r.seen(); !slices.Equal(got, []int{4}) {
			t.Errorf("%v", got)
		}
		time.Sleep(time.Minute)
		if got := r.seen(); !slices.Equal(got, []int{4, 3}) {
			t.Errorf("after a minute: %v", got)
		}
		e.leave(c)
		if got := r.seen(); !slices.Equal(got, []int{4, 3, 2}) {
			t.Errorf("when the one before has left: %v", got)
		}
		e.Release(g)
		g = e.Start(b.Wait).Grant(time.Second)
		e.Release(g)
		if err := r.ended(e); err != nil || !slices.Equal(r.seen(), []int{4, 3, 2, 0}) {
			t.Errorf("%v, %v", r.seen(), err)
		}
		g = e.Start(x.Wait).Grant(now)
		again := e.read(e.T.Context(), x)
		if err := again.ended(e); err != nil || !slices.Equal(again.seen(), []int{0}) {
			t.Errorf("when it is granted: %v, %v", again.seen(), err)
		}
		e.Release(g)
		e.empty()
	})
}

// Before the gate: those ahead in the flow, and all in the lock's queue.
func TestAheadBeforeTheGate(t *testing.T) {
	run(t, func(e env) {
		keeps := e.lock(recipes.LockDelay(time.Minute)) // whose record has a node of its own
		g := e.Lock(keeps)
		var tickets []*fair.Ticket
		for range 4 {
			tickets = append(tickets, e.joined(e.lock(fair.Flow("a", 2))))
		}
		other := e.joined(e.lock(fair.Flow("b", 1)))
		for i, want := range []int{1, 2, 4, 5} {
			r := e.read(e.T.Context(), tickets[i])
			if got := r.seen(); !slices.Equal(got, []int{want}) {
				t.Errorf("%d: %v, want %d", i, got, want)
			}
		}
		r := e.read(e.T.Context(), tickets[3])
		e.Release(g)
		for _, x := range []*fair.Ticket{tickets[0], tickets[1], other, tickets[2]} {
			g = e.Start(x.Wait).Grant(time.Second)
			time.Sleep(time.Second)
			e.Release(g)
		}
		e.Release(e.Start(tickets[3].Wait).Grant(time.Second))
		err := r.ended(e)
		if got := r.seen(); err != nil || got[0] != 5 || got[len(got)-1] != 0 || len(got) < 3 {
			t.Errorf("%v, %v", got, err)
		}
		e.empty()
	})
}

// A number is one listing, or one and a read: no watch, and nothing is written.
func TestAheadAddsNoWatch(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		l := e.lock(opts...)
		g := e.Lock(l)
		var tickets []*fair.Ticket
		for range 4 {
			tickets = append(tickets, e.joined(l))
		}
		time.Sleep(10 * time.Second)
		for i, x := range tickets {
			e.ResetCounts()
			watches := e.Watches()
			for range x.Ahead(e.T.Context()) {
				break
			}
			c := e.Requests()
			if lists := c.Of(zktest.OpGetChildren) + c.Of(zktest.OpGetChildren2); lists != 1 || c.Total() > 2 || e.Watches() != watches {
				e.T.Errorf("%d: %+v, and %d watches more", i, c, e.Watches()-watches)
			}
		}
		for _, x := range tickets {
			e.leave(x)
		}
		e.Release(g)
	})
}

// It ends with its context, without an element for that, and says nothing if that has
// ended already.
func TestAheadEndsWithItsContext(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		l := e.lock(opts...)
		g := e.Lock(l)
		for range 4 {
			x := e.joined(l)
			ctx, cancel := context.WithCancel(e.T.Context())
			r := e.read(ctx, x)
			before := len(r.seen())
			cancel()
			if err := r.ended(e); err != nil || before != 1 || len(r.seen()) != 1 {
				e.T.Errorf("%v, %v", r.seen(), err)
			}
			r = e.read(ctx, x)
			if err := r.ended(e); err != nil || len(r.seen()) != 0 {
				e.T.Errorf("%v, %v", r.seen(), err)
			}
			// It is cut off while it counts.
			ctx, cancel = context.WithTimeout(e.T.Context(), time.Second)
			e.BlackHole(0, zktest.ToClient)
			if err := e.read(ctx, x).ended(e); err != nil {
				e.T.Error(err)
			}
			cancel()
			e.Heal()
			time.Sleep(2 * time.Second)
			defer e.leave(x)
		}
		e.Release(g)
	})
}

// If the place is lost or left, that is the last element.
func TestAheadOfATicketThatIsLostOrLeft(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		g := e.Lock(e.lock(opts...))
		for _, turn := range []bool{false, true} {
			for how, end := range map[string]struct {
				do   func(*fair.Ticket, int64)
				want error
			}{
				"left":    {func(x *fair.Ticket, _ int64) { e.leave(x) }, fair.ErrSpent},
				"expired": {func(_ *fair.Ticket, id int64) { e.Expire(id) }, recipes.ErrSessionLost},
			} {
				s := e.Open()
				l := e.at(s, opts...)
				e.joined(l)
				e.joined(l)
				x := e.joined(l)
				r := e.read(e.T.Context(), x)
				if turn {
					e.Release(g)
					e.leave(e.joined(l)) // all before it are gone soon
				}
				end.do(x, s.ID())
				if err := r.ended(e); !errors.Is(err, end.want) {
					e.T.Errorf("%s: %v", how, err)
				}
				if err := e.read(e.T.Context(), x).ended(e); !errors.Is(err, end.want) {
					e.T.Errorf("%s, asked again: %v", how, err)
				}
				s.Close()
				time.Sleep(time.Minute)
				if turn {
					g = e.Lock(e.lock(opts...))
				}
			}
		}
		e.Release(g)
	})
}

// Left when its turn had come, it does not say that it has.
func TestAheadOfATicketThatIsLeftAfterItsTurn(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		x := e.joined(e.lock(opts...))
		e.leave(x)
		if err := e.read(e.T.Context(), x).ended(e); !errors.Is(err, fair.ErrSpent) {
			e.T.Errorf("%v", err)
		}
	})
}

// While a lock delay runs nobody is ahead, but the turn has not come.
func TestAheadDuringALockDelay(t *testing.T) {
	eachKind(t, func(e env, opts []recipes.Option) {
		opts = with(opts, recipes.LockDelay(time.Minute))
		s := e.Open()
		e.Lock(e.at(s, opts...))
		x := e.joined(e.lock(opts...))
		r := e.read(e.T.Context(), x)
		e.Expire(s.ID())
		time.Sleep(50 * time.Second)
		if got := r.seen(); !slices.Equal(got, []int{1}) {
			e.T.Errorf("during the delay: %v", got)
		}
		time.Sleep(15 * time.Second)
		if err := r.ended(e); err != nil || !slices.Equal(r.seen(), []int{1, 0}) {
			e.T.Errorf("%v, %v", r.seen(), err)
		}
		e.leave(x)
	})
}

// A ticket that passes the gate while it is counted goes on telling.
func TestAheadWhileTheGateIsPassed(t *testing.T) {
	seeds(t, 10, func(t *testing.T, seed uint64) {
		run(t, func(e env) {
			l, m := e.lock(fair.Flow("a", 1)), e.lock(fair.Flow("b", 1))
			g := e.Lock(m)
			first, second, x := e.joined(l), e.joined(m), e.joined(l)
			e.Delay(4 * time.Millisecond)
			e.Release(g)
			g = e.Start(first.Wait).Grant(time.Second)
			time.Sleep(time.Duration(seed) * time.Millisecond)
			r := e.read(e.T.Context(), x)
			time.Sleep(time.Second)
			if got := r.seen(); len(got) == 0 || got[len(got)-1] != 2 {
				t.Errorf("%v, want 2 in the end", got)
			}
			e.Release(g)
			e.Release(e.Start(second.Wait).Grant(time.Second))
			e.Release(e.Start(x.Wait).Grant(time.Second))
			if err := r.ended(e); err != nil {
				t.Error(err)
			}
			e.Delay(0)
			e.empty()
		})
	})
}

// A number that can't be read is an error, not a silence.
func TestAheadThatCannotCount(t *testing.T) {
	run(t, func(e env) {
		g := e.Lock(e.lock())
		x := e.joined(e.lock())
		e.FailRequest(zktest.OpGetChildren2, 1, int32(zktest.NoAuth))
		if err := e.read(e.T.Context(), x).ended(e); !errors.Is(err, recipes.ErrPermission) {
			t.Errorf("%v", err)
		}
		if got := e.read(e.T.Context(), x); !slices.Equal(got.seen(), []int{1}) {
			t.Errorf("asked again: %v", got.seen())
		}
		e.Release(g)
		e.Release(e.Start(x.Wait).Grant(time.Second))
	})
}
