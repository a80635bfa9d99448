package semaphore_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 69: the second is turned away before it queues.
func TestClientDisagreesAboutTheSize(t *testing.T) {
	run(t, func(e env) {
		g := e.held(e.fresh(3), 1)
		other := e.fresh(4)
		before := e.Zxid()
		e.take(other, 1).Fails(time.Second, recipes.ErrConflict)
		e.try(other, 1).Fails(time.Second, recipes.ErrConflict)
		if e.Zxid() != before {
			t.Error("something was written")
		}
		_, err := other.Acquire(e.T.Context())
		if want := "its size is 3, not 4"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
		e.Release(g)
		e.take(other, 1).Fails(time.Second, recipes.ErrConflict) // nobody holds, but it is the size all the same
	})
}

// A directory that is new has the size of the client that made it.
func TestSizeGoesWithTheDirectory(t *testing.T) {
	run(t, func(e env) {
		three, four := e.fresh(3), e.fresh(4)
		e.Release(e.held(three, 1))
		time.Sleep(3 * time.Second) // reaped
		if e.Exists(locktest.Path) {
			t.Fatal("not reaped")
		}
		e.Release(e.held(four, 4))
		e.take(three, 1).Fails(time.Second, recipes.ErrConflict)
	}, zktest.ReapInterval(time.Second))
}

// The follower to which the operator is connected still shows the size that is asked for.
func TestResizedWhileTheFollowerLags(t *testing.T) {
	run(t, func(e env) {
		e.resize(e.fresh(1), 3)
		s := e.Open()
		e.StaleReads(s.ID(), true)
		e.resize(e.fresh(1), 5)
		e.resize(e.sem(s, 1), 3)
		e.take(e.fresh(5), 1).Fails(time.Second, recipes.ErrConflict)
		e.Release(e.held(e.fresh(3), 3))
	})
}

func TestGrowingAdmitsWaitersAtOnce(t *testing.T) {
	run(t, func(e env) {
		g := e.held(e.fresh(1), 1)
		var waiting []*locktest.Attempt
		s := e.fresh(1)
		for i := range 3 {
			waiting = append(waiting, e.take(s, 1))
			e.contenders(i + 2)
		}
		operator := e.fresh(17)
		e.resize(operator, 3)
		a, b := waiting[0].Grant(time.Second), waiting[1].Grant(time.Second)
		slotsAre(t, a, 1)
		slotsAre(t, b, 2)
		time.Sleep(time.Minute)
		if !waiting[2].Pending() {
			t.Fatal("more than three")
		}
		e.Release(g)
		c := waiting[2].Grant(time.Second)
		slotsAre(t, c, 0)
		for _, g := range []*recipes.Grant{a, b, c} {
			e.Release(g)
		}
		// Those who had used it follow, and may ask for as much as there is.
		e.Release(e.held(s, 3))
		e.Release(e.held(operator, 3))
		e.Release(e.held(e.fresh(3), 3))
		e.take(e.fresh(1), 1).Fails(time.Second, recipes.ErrConflict)
		e.take(e.fresh(17), 1).Fails(time.Second, recipes.ErrConflict)
	})
}

func TestShrinkingLetsHoldersFinish(t *testing.T) {
	run(t, func(e env) {
		s := e.fresh(4)
		var g []*recipes.Grant
		for range 4 {
			g = append(g, e.held(s, 1))
		}
		a := e.take(s, 1)
		e.contenders(5)
		b := e.take(s, 2)
		e.contenders(6)
		e.resize(e.fresh(2), 2)
		for _, i := range []int{0, 1} {
			e.Release(g[i])
			time.Sleep(time.Minute)
			if !a.Pending() || !b.Pending() {
				t.Fatal("granted while there is no room")
			}
		}
		if g[2].Err() != nil || g[3].Err() != nil {
			t.Error("a holder lost its permit")
		}
		e.Release(g[2])
		one := a.Grant(time.Second)
		slotsAre(t, one, 0) // although slot 3 is still taken
		e.Release(g[3])
		time.Sleep(time.Minute)
		if !b.Pending() {
			t.Fatal("three of two")
		}
		e.Release(one)
		two := b.Grant(time.Second)
		slotsAre(t, two, 0, 1)
		e.Release(two)
	})
}

func TestWaiterAsksForMoreThanTheNewSize(t *testing.T) {
	for _, first := range []bool{true, false} {
		run(t, func(e env) {
			s := e.fresh(4)
			g, h := e.held(s, 1), e.held(s, 1)
			small := []*locktest.Attempt{}
			if !first {
				small = append(small, e.take(s, 3))
				e.contenders(3)
			}
			large := e.take(s, 4)
			e.contenders(3 + len(small))
			behind := e.take(s, 1)
			e.contenders(4 + len(small))
			e.resize(s, 3)
			if !first {
				e.Release(g)
				e.Release(h)
				e.Release(small[0].Grant(time.Second))
			}
			large.Fails(time.Second, recipes.ErrConflict)
			if _, err := large.Result(); !strings.Contains(err.Error(), "4 permits asked for, and its size is 3 now") {
				t.Error(err)
			}
			e.Release(behind.Grant(time.Second)) // who was behind it goes on
		})
	}
}

// What was asked for before the size was reduced is refused before it queues.
func TestClientThatFollowsAsksForTooMany(t *testing.T) {
	run(t, func(e env) {
		s, operator := e.fresh(4), e.fresh(4)
		e.Release(e.held(s, 1))
		e.resize(operator, 2)
		e.try(s, 4).Fails(time.Second, recipes.ErrConflict)
		e.take(s, 4).Fails(time.Second, recipes.ErrInvalid) // by now it knows
		e.Release(e.held(s, 2))
	})
}

// The change of the size outlasts a time when nobody is there, and the renewal of
// the directory.
func TestSizeOutlastsIdleTimes(t *testing.T) {
	run(t, func(e env) {
		s := e.fresh(3)
		e.Release(e.held(s, 3)) // so that the directory is one that can be reaped
		e.resize(s, 2)
		e.resize(s, 2)
		time.Sleep(time.Minute)
		e.take(e.fresh(3), 1).Fails(time.Second, recipes.ErrConflict)
		g := e.held(s, 2)
		e.SetSequence(locktest.Path, math.MaxInt32-5)
		e.take(e.fresh(2), 1).Fails(time.Second, recipes.ErrExhausted)
		e.Release(g)
		e.contenders(0)
		next := e.held(e.fresh(2), 1)
		if next.Token() <= g.Token() || !strings.Contains(e.node(next), "-lease-000000000") {
			t.Errorf("%s, token %v after %v", e.node(next), next.Token(), g.Token())
		}
		e.Release(next)
		e.take(e.fresh(3), 1).Fails(time.Second, recipes.ErrConflict)
		time.Sleep(time.Minute)
		e.Release(e.held(s, 2))
	}, zktest.ReapInterval(time.Second))
}

// The answer to a change of the size is lost: it is made, and made once.
func TestReplyOfResizeIsLost(t *testing.T) {
	for _, lose := range []func(*zktest.Server, zktest.Op, int){(*zktest.Server).LoseReply, (*zktest.Server).LoseRequest} {
		run(t, func(e env) {
			s := e.fresh(3)
			g := e.held(s, 3)
			a := e.take(s, 1)
			e.contenders(2)
			lose(e.Server, zktest.OpMulti, 1)
			e.resize(s, 4)
			e.Release(a.Grant(10 * time.Second))
			e.Release(g)
		})
	}
}

// The size changes between what the first in line has read and what it writes.
func TestSizeChangesWhileSomebodyIsBeingAdmitted(t *testing.T) {
	run(t, func(e env) {
		s := e.fresh(2)
		g := e.held(s, 1)
		operator := e.fresh(2)
		late := e.fresh(2)
		arrived, release := e.HoldRequest(zktest.OpMulti, 1)
		a := e.take(late, 1)
		locktest.Await(e.Env, arrived)
		e.resize(operator, 1)
		release()
		time.Sleep(time.Minute)
		if !a.Pending() {
			t.Fatal("two of one")
		}
		e.Release(g)
		e.Release(a.Grant(time.Second))
	})
}
