package semaphore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
)

func TestPermitsAreGivenUntilThereAreNoMore(t *testing.T) {
	run(t, func(e env) {
		a := e.held(e.fresh(3), 1)
		b := e.held(e.fresh(3), 2)
		slotsAre(t, a, 0)
		slotsAre(t, b, 1, 2)
		if b.Token() <= a.Token() {
			t.Errorf("token %v after %v", b.Token(), a.Token())
		}
		c := e.take(e.fresh(3), 1)
		e.contenders(3)
		time.Sleep(10 * time.Minute)
		if !c.Pending() {
			t.Fatal("granted")
		}
		e.Release(a)
		g := c.Grant(time.Second)
		slotsAre(t, g, 0)
		e.Release(b)
		e.Release(g)
		e.Empty()
	})
}

// The lowest slots that are free, also where those who had them left in another
// order, and where the record still names them.
func TestLowestFreeSlotsAreGiven(t *testing.T) {
	run(t, func(e env) {
		s, other := e.fresh(5), e.fresh(5)
		var g []*recipes.Grant
		for i := range 5 {
			g = append(g, e.held(s, 1))
			slotsAre(t, g[i], i)
		}
		e.Release(g[3])
		e.Release(g[1])
		two := e.held(other, 2)
		slotsAre(t, two, 1, 3)
		e.Release(g[0])
		e.Release(g[4])
		one := e.held(other, 1)
		slotsAre(t, one, 0)
		e.Release(one)
		e.Release(two)
		e.Release(g[2])
		all := e.held(s, 5)
		slotsAre(t, all, 0, 1, 2, 3, 4)
		e.Release(all)
		if got := e.held(s, 1); got.Slots()[0] != 0 {
			t.Errorf("slots %v", got.Slots())
		} else {
			e.Release(got)
		}
		e.Empty()
	})
}

// Nobody overtakes: a small request waits behind a large one.
func TestSmallRequestDoesNotOvertakeALargeOne(t *testing.T) {
	run(t, func(e env) {
		a, b := e.held(e.fresh(3), 1), e.held(e.fresh(3), 1)
		large := e.take(e.fresh(3), 3)
		e.contenders(3)
		small := e.take(e.fresh(3), 1)
		e.contenders(4)
		e.try(e.fresh(3), 1).Fails(time.Second, recipes.ErrBusy)
		e.Release(a)
		time.Sleep(time.Minute)
		if !large.Pending() || !small.Pending() {
			t.Fatal("granted out of turn")
		}
		e.try(e.fresh(3), 1).Fails(time.Second, recipes.ErrBusy)
		e.Release(b)
		g := large.Grant(time.Second)
		slotsAre(t, g, 0, 1, 2)
		if !small.Pending() {
			t.Fatal("granted while all permits are held")
		}
		e.Release(g)
		e.Release(small.Grant(time.Second))
		e.Empty()
	})
}

// What was released while the first in line waits for more stays for it.
func TestLargeRequestCollectsWhatIsReleased(t *testing.T) {
	run(t, func(e env) {
		var g []*recipes.Grant
		for range 4 {
			g = append(g, e.held(e.fresh(4), 1))
		}
		large := e.take(e.fresh(4), 3)
		e.contenders(5)
		for _, i := range []int{2, 0} {
			e.Release(g[i])
			time.Sleep(time.Second)
			if !large.Pending() {
				t.Fatal("granted")
			}
		}
		e.Release(g[3])
		got := large.Grant(time.Second)
		slotsAre(t, got, 0, 2, 3)
		e.Release(got)
		e.Release(g[1])
	})
}

// case 66: two clients that take both permits never have one each.
func TestTwoTakeTwoOfTwoAThousandTimes(t *testing.T) {
	run(t, func(e env) {
		w := &watchman{size: 2}
		var wg sync.WaitGroup
		for range 2 {
			s := e.fresh(2)
			wg.Go(func() {
				for range 1000 {
					g, err := s.AcquireN(e.T.Context(), 2)
					if err != nil {
						t.Error(err)
						return
					}
					w.saw(t, g)
					if err := g.Release(e.T.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if w.count != 2000 {
			t.Errorf("%d grants", w.count)
		}
		e.Empty()
	})
}

func TestContextHasEnded(t *testing.T) {
	run(t, func(e env) {
		s := e.fresh(2)
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(e.T.Context())
		cancel(why)
		before := e.Zxid()
		for _, f := range []func(context.Context) (*recipes.Grant, error){s.Acquire, s.TryAcquire} {
			e.StartContext(ctx, f).Fails(time.Millisecond, why)
		}
		if err := s.Resize(ctx, 3); !errors.Is(err, why) {
			t.Error(err)
		}
		if _, err := s.Contenders(ctx); !errors.Is(err, why) {
			t.Error(err)
		}
		if e.Zxid() != before {
			t.Error("something was written")
		}
	})
}

// case 8: at each place in the queue, a wait that is given up leaves nothing, and
// those behind move up.
func TestWaitIsGivenUp(t *testing.T) {
	for who := range 3 {
		run(t, func(e env) {
			g := e.held(e.fresh(2), 2)
			var waiting []*locktest.Attempt
			for i := range 3 {
				waiting = append(waiting, e.take(e.fresh(2), 1))
				e.contenders(i + 2)
			}
			waiting[who].Cancel()
			waiting[who].Fails(100*time.Millisecond, context.Canceled)
			e.contenders(3)
			e.Release(g)
			for i, a := range waiting {
				if i != who {
					a.Grant(time.Second)
				}
			}
		})
	}
}
