package mutex_test

import (
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
					arrived, release := e.HoldRequest(zktest.OpCreate2, 1)
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

// case 35: what stands at our node's name is not ours: no grant, and it is left.
func TestOwnNodeBelongsToAnotherSession(t *testing.T) {
	for _, wait := range []time.Duration{0, 10 * time.Second} { // in a longer wait the own node is watched
		locktest.Run(t, func(e *locktest.Env) {
			other := e.Open().ID()
			g := e.Lock(e.New())
			a := e.Start(e.New().Lock)
			e.Queued(2)
			time.Sleep(wait)
			theirs := nodeAt(e, 1)
			e.Delete(theirs)
			e.CreateEphemeral(theirs, nil, other)
			e.Release(g)
			time.Sleep(time.Second)
			if !a.Pending() {
				t.Error("granted on another's node")
			}
			if !e.Exists(theirs) {
				t.Fatal("another's node was removed")
			}
			e.Delete(theirs)
			e.Release(a.Grant(time.Second))
			e.Empty()
		})
	}
}
