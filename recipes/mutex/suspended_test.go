package mutex_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// The strict policy: a suspended connection is a loss, and the lock is given up
// as soon as the server can be reached.
func TestStrictPolicy(t *testing.T) {
	for _, delay := range []bool{false, true} {
		locktest.Run(t, func(e *locktest.Env) {
			s := e.Open(func(c *session.Config) { c.RevokeOnSuspend = true })
			var opts []recipes.Option
			if delay {
				opts = append(opts, recipes.LockDelay(time.Minute))
			}
			m := e.Mutex(s, opts...)
			g := e.Lock(m)
			next := e.Start(e.New().Lock)
			time.Sleep(time.Second)
			start := time.Now()
			e.Cut(s.ID())
			<-g.Done()
			if d := time.Since(start); d > 10*time.Millisecond || !errors.Is(g.Err(), recipes.ErrSuspended) {
				t.Errorf("after %v: %v", d, g.Err())
			}
			g = next.Grant(2 * time.Minute)
			if d := time.Since(start); delay != (d >= time.Minute) || !delay && d > 2*time.Second {
				t.Errorf("with delay %v: the next after %v", delay, d)
			}
			e.Release(g)
			e.Release(e.Lock(m))
			e.Empty()
		})
	}
}

// The connection is suspended, under the strict policy, on the way to the grant:
// there is no grant then, nobody has died, and Lock goes on.
func TestStrictPolicyBeforeTheGrant(t *testing.T) {
	for _, fail := range []bool{false, true} {
		locktest.Run(t, func(e *locktest.Env) {
			opts := []recipes.Option{recipes.LockDelay(time.Hour), recipes.OnRevoke(func(r recipes.Revocation) { t.Errorf("revoked: %v", r.Cause) })}
			if fail {
				opts = append(opts, recipes.FailOnLoss())
			}
			m := e.Mutex(e.Open(func(c *session.Config) { c.RevokeOnSuspend = true }), opts...)
			e.Release(e.Lock(m))
			e.LoseReply(zktest.OpMulti, 1) // the announcement of the lock delay
			a := e.Start(m.Lock)
			if fail {
				a.Fails(time.Minute, recipes.ErrSuspended)
			} else {
				g := a.Grant(time.Minute)
				if g.Err() != nil {
					t.Error(g.Err())
				}
				e.Release(g)
			}
			e.Empty()
			e.Release(e.Start(e.New().TryLock).Grant(time.Second))
		})
	}
}
