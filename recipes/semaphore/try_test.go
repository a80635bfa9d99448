package semaphore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/zktest"
)

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

// It takes the weights of those who hold and of those who wait to see that there is
// no room.
func TestTryBehindALargeRequestWritesNothing(t *testing.T) {
	for _, large := range []int{5, 6} {
		run(t, func(e env) {
			g := e.held(e.fresh(6), 2)
			a := e.take(e.fresh(6), large)
			e.contenders(2)
			zxid, s := e.Zxid(), e.fresh(6)
			zxid++ // the session
			e.try(s, 1).Fails(time.Second, recipes.ErrBusy)
			if e.Zxid() != zxid {
				t.Errorf("%d asked for: it has written", large)
			}
			e.Release(g)
			e.Release(a.Grant(time.Second))
		})
	}
}

// Others come in between the look and the queueing, and there is no room for them:
// that is seen without waiting for them.
func TestTryIsOvertaken(t *testing.T) {
	run(t, func(e env) {
		g := e.held(e.fresh(3), 1)
		s := e.fresh(3)
		e.Release(e.held(s, 1))
		arrived, release := e.HoldRequest(zktest.OpCreate2, 1)
		a := e.try(s, 1)
		locktest.Await(e.Env, arrived)
		large := e.take(e.fresh(3), 3)
		e.contenders(2)
		release()
		a.Fails(100*time.Millisecond, recipes.ErrBusy)
		e.contenders(2)
		e.Release(g)
		e.Release(large.Grant(time.Second))
	})
}
