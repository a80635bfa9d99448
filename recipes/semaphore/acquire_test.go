package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/zktest"
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

// case 67
func TestFiftyTryAtOnce(t *testing.T) {
	for _, sessions := range []int{1, 5, 50} {
		t.Run(fmt.Sprint(sessions, " sessions"), func(t *testing.T) {
			run(t, func(e env) {
				const size = 7
				w := &watchman{size: size}
				sems := make([]*semaphore.Semaphore, sessions)
				for i := range sems {
					sems[i] = e.fresh(size)
				}
				for round := range 5 {
					var attempts []*locktest.Attempt
					for i := range 50 {
						attempts = append(attempts, e.try(sems[i%sessions], 1))
					}
					var grants []*recipes.Grant
					for _, a := range attempts {
						g, err := a.Result()
						if err == nil {
							w.saw(t, g)
							grants = append(grants, g)
						} else if !errors.Is(err, recipes.ErrBusy) {
							t.Error(err)
						}
						if a.Took() >= time.Second {
							t.Errorf("took %v", a.Took())
						}
					}
					if len(grants) == 0 {
						t.Errorf("round %d: nobody got any", round)
					}
					for _, g := range grants {
						e.Release(g)
					}
					e.Empty()
				}
				if w.most > size {
					t.Errorf("%d held", w.most)
				}
				t.Logf("%d grants in 5 rounds", w.count)
			})
		})
	}
}

// As many as there are permits try at the same moment: there is room for all.
func TestAsManyTryAsThereArePermits(t *testing.T) {
	run(t, func(e env) {
		const size = 8
		var attempts []*locktest.Attempt
		for range size {
			attempts = append(attempts, e.try(e.fresh(size), 1))
		}
		for _, a := range attempts {
			e.Release(a.Grant(time.Second))
		}
	})
}

// Those ahead whose program does not go on are not waited for.
func TestTryGivesUpOnThoseWhoDoNotGoOn(t *testing.T) {
	run(t, func(e env) {
		e.held(e.fresh(3), 1)
		stuck := e.Open()
		a := e.take(e.sem(stuck, 3), 1)
		_, release := e.HoldRequest(zktest.OpMulti, 1)
		e.contenders(2)
		e.try(e.fresh(3), 1).Fails(2*time.Second, recipes.ErrBusy)
		e.contenders(2)
		release()
		a.Grant(time.Second)
	})
}

// A busy semaphore is found busy without writing anything.
func TestTryOfABusySemaphoreWritesNothing(t *testing.T) {
	for _, waits := range []bool{false, true} {
		run(t, func(e env) {
			s := e.fresh(3)
			a, b := e.held(e.fresh(3), 2), e.held(e.fresh(3), 1)
			if waits {
				w := e.take(e.fresh(3), 1)
				e.contenders(3)
				defer func() { w.Cancel(); w.Result() }()
			}
			e.try(s, 1).Fails(time.Second, recipes.ErrBusy)
			zxid := e.Zxid()
			e.ResetCounts()
			for range 10 {
				e.try(s, 1).Fails(time.Second, recipes.ErrBusy)
			}
			c := e.Requests()
			if e.Zxid() != zxid || c.Total() > 20 {
				t.Errorf("waits=%v: zxid %d, was %d; %d requests", waits, e.Zxid(), zxid, c.Total())
			}
			e.Release(b)
			if !waits { // there is one free, but not two
				zxid = e.Zxid()
				e.try(s, 2).Fails(time.Second, recipes.ErrBusy)
				if e.Zxid() != zxid {
					t.Error("it has written")
				}
				e.Release(e.try(s, 1).Grant(time.Second))
			}
			e.Release(a)
		})
	}
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
