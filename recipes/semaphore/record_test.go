package semaphore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func TestPathOfAnotherRecipe(t *testing.T) {
	run(t, func(e env) {
		m := e.New()
		g := e.Lock(m)
		e.take(e.fresh(2), 1).Fails(time.Second, recipes.ErrConflict)
		e.try(e.fresh(2), 1).Fails(time.Second, recipes.ErrConflict)
		if err := e.fresh(2).Resize(e.T.Context(), 3); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
		e.Release(g)
		e.DeleteAll("/locks")

		// In a directory without a record, too.
		other := e.Open()
		e.CreateEphemeral(locktest.Path+"/_c_1-lock-0000000000", nil, other.ID())
		e.take(e.fresh(2), 1).Fails(time.Second, recipes.ErrConflict)
		if err := e.fresh(2).Resize(e.T.Context(), 3); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
		e.DeleteAll("/locks")

		h := e.held(e.fresh(2), 1)
		e.Start(m.Lock).Fails(time.Second, recipes.ErrConflict)
		other2, err := mutex.New(other, locktest.Path)
		if err != nil {
			t.Fatal(err)
		}
		e.Start(other2.TryLock).Fails(time.Second, recipes.ErrConflict)
		e.Release(h)
	}, zktest.AllowOpenSessions())
}

// Somebody else's data is at the path: there is no place for the size. Data that is
// missing is written.
func TestDataOfThePath(t *testing.T) {
	run(t, func(e env) {
		e.Create(locktest.Path, []byte("3")) // as kazoo's semaphore has it
		e.take(e.fresh(3), 1).Fails(time.Second, recipes.ErrConflict)
		e.try(e.fresh(3), 1).Fails(time.Second, recipes.ErrConflict)
		if err := e.fresh(2).Resize(e.T.Context(), 3); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
		if d, _ := e.Data(locktest.Path); string(d) != "3" {
			t.Errorf("overwritten: %q", d)
		}
		e.DeleteAll("/locks")
		e.Create(locktest.Path, nil)
		arrived, release := e.HoldRequest(zktest.OpCreate2, 1)
		first := e.take(e.fresh(3), 1)
		locktest.Await(e.Env, arrived) // it is about to queue
		e.take(e.fresh(2), 1).Fails(time.Second, recipes.ErrConflict)
		release()
		g := first.Grant(time.Second)
		e.take(e.fresh(2), 1).Fails(time.Second, recipes.ErrConflict)
		e.Release(g)
	})
}

// The record is emptied, or written by hand, while permits are held.
func TestRecordIsOverwritten(t *testing.T) {
	for _, by := range []string{"", "lockkeeper semaphore size=3", "lockkeeper semaphore dir=7 size=3 admitted=55 slots=55:0"} {
		for _, waits := range []bool{false, true} {
			run(t, func(e env) {
				s := e.fresh(3)
				w := &watchman{size: 3}
				a, b := e.held(s, 1), e.held(s, 1)
				w.saw(e.T, a)
				w.saw(e.T, b)
				var first *locktest.Attempt
				if waits {
					first = e.take(s, 2)
					e.contenders(3)
				}
				e.Set(locktest.Path, []byte(by))
				time.Sleep(time.Second)
				if !waits {
					first = e.take(e.fresh(3), 2)
					e.contenders(3)
				}
				second := e.take(e.fresh(3), 1)
				time.Sleep(time.Minute)
				if !first.Pending() || !second.Pending() {
					t.Fatal("granted")
				}
				e.try(e.fresh(3), 1).Fails(2*time.Second, recipes.ErrBusy)
				e.Release(a)
				c := first.Grant(time.Second)
				w.saw(e.T, c)
				e.Release(c)
				d := second.Grant(time.Second)
				w.saw(e.T, d)
				slotsAre(e.T, d, 0)
				e.Release(d)
				e.Release(b)
				e.Empty()
			})
		}
	}
}

// While the first in line takes what was released, everything is removed and made
// anew, and what it asks for goes through there: under its name stands another's node,
// and the record has the version of the old one. It is not admitted by that: it queues
// again.
func TestFirstInLineTakesInADirectoryMadeAnew(t *testing.T) {
	run(t, func(e env) {
		g := e.held(e.fresh(1), 1)
		first := e.take(e.fresh(1), 1)
		e.contenders(2)
		names := e.Children(locktest.Path)
		record, _ := e.Data(locktest.Path)
		other := e.Open()
		arrived, goOn := e.HoldRequest(zktest.OpMulti, 1)
		e.Release(g)
		<-arrived
		e.DeleteAll(locktest.Path)
		e.Create(locktest.Path, record)
		e.Set(locktest.Path, record) // once, as the holder had
		anothers := locktest.Path + "/" + names[1]
		e.CreateEphemeral(anothers+"0", nil, other.ID()) // so that the counter is beyond its number
		e.Delete(anothers + "0")
		e.CreateEphemeral(anothers, nil, other.ID())
		goOn()
		next := first.Grant(time.Minute)
		time.Sleep(time.Second) // more than it takes to see that a node is not one's own
		if err := next.Err(); err != nil {
			e.T.Errorf("admitted by another's node: %v\n%s", err, e.Tree())
		}
		if !e.Exists(anothers) {
			t.Error("another's node was removed")
		}
		e.Release(next)
		e.Delete(anothers)
	})
}
