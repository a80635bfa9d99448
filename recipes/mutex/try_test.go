package mutex_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 7: another comes between the look and the create, and the delete of the
// one that lost meets a cut.
func TestTryLockLosesAndItsDeleteMeetsACut(t *testing.T) {
	for name, fault := range map[string]func(e *locktest.Env, n int){
		"reply lost":   func(e *locktest.Env, n int) { e.LoseReply(zktest.OpDelete, n) },
		"request lost": func(e *locktest.Env, n int) { e.LoseRequest(zktest.OpDelete, n) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) {
				m, other := e.New(), e.New()
				e.Release(e.Lock(m))
				e.Release(e.Lock(other))
				for round := range 100 {
					arrived, release := e.HoldRequest(zktest.OpCreate, 1)
					a := e.Start(m.TryLock)
					locktest.Await(e, arrived)
					g := e.Lock(other)
					for i := range 1 + round%3 {
						fault(e, i+1)
					}
					release()
					a.Fails(100*time.Millisecond, recipes.ErrBusy)
					e.Queued(1)
					e.Release(g)
					e.Empty()
				}
				e.Release(e.Lock(m))
			})
		})
	}
}

// case 35: what stands at our node's name is not ours.
func TestOwnNodeBelongsToAnotherSession(t *testing.T) {
	for _, try := range []bool{false, true} {
		locktest.Run(t, func(e *locktest.Env) {
			other := e.Open().ID()
			m := e.New()
			e.Release(e.Lock(m))
			arrived, release := e.HoldRequest(zktest.OpGetData, map[bool]int{false: 1, true: 2}[try])
			lock := m.Lock
			if try {
				lock = m.TryLock
			}
			a := e.Start(lock)
			locktest.Await(e, arrived)
			e.Queued(1)
			theirs := nodeAt(e, 0)
			e.Delete(theirs)
			e.CreateEphemeral(theirs, nil, other)
			release()
			time.Sleep(time.Second)
			if try {
				if g, err := a.Result(); g != nil || !errors.Is(err, recipes.ErrBusy) {
					t.Errorf("%v, %v", g, err)
				}
			} else if !a.Pending() {
				t.Error("granted on another's node")
			}
			if !e.Exists(theirs) {
				t.Error("another's node was removed")
				return
			}
			e.Delete(theirs)
			if !try {
				e.Release(a.Grant(time.Second))
			}
			e.Empty()
		})
	}
}
