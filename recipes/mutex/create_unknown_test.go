package mutex_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 1
func TestReplyOfTheCreateIsLost(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m := e.New()
		e.LoseReply(zktest.OpCreate2, 1)
		g := e.Lock(m)
		if got := e.Children(locktest.Path); len(got) != 1 {
			t.Errorf("nodes of one request: %q", got)
		}
		e.Release(g)
		e.Empty()
	})
}

// case 1: the caller has gone before the connection is back.
func TestReplyOfTheCreateIsLostAndTheCallerGivesUp(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m := e.New()
		e.Release(e.Lock(m)) // so that the next create is the contender's
		e.LoseReply(zktest.OpCreate2, 1)
		e.Refuse(true)
		a := e.Start(m.Lock)
		time.Sleep(time.Second)
		if !a.Pending() || len(e.Children(locktest.Path)) != 1 {
			t.Fatalf("pending %v, children %q", a.Pending(), e.Children(locktest.Path))
		}
		a.Cancel()
		a.Fails(100*time.Millisecond, context.Canceled)
		e.Refuse(false)
		time.Sleep(2 * time.Second)
		if got := e.Children(locktest.Path); len(got) != 0 {
			t.Errorf("left behind two seconds after the connection came back: %q", got)
		}
	})
}

// case 2
func TestReplyOfTheCreateAndThenOfTheLookUpsIsLost(t *testing.T) {
	for k := 1; k <= 5; k++ {
		for _, op := range []zktest.Op{zktest.OpSync, zktest.OpGetChildren2, zktest.OpGetData} {
			t.Run(fmt.Sprint(op, k), func(t *testing.T) {
				locktest.Run(t, func(e *locktest.Env) {
					m := e.New()
					e.Release(e.Lock(m))
					e.LoseReply(zktest.OpCreate2, 1)
					for i := 1; i <= k; i++ {
						e.LoseReply(op, i)
					}
					g := e.Lock(m)
					if got := e.Children(locktest.Path); len(got) != 1 {
						t.Errorf("nodes of one request: %q", got)
					}
					e.Release(g)
					e.Empty()
				})
			})
		}
	}
}

// case 6: the connection is lost with each request of the way to the grant and
// back, before it is carried out or after.
func TestConnectionIsLostAtEachRequest(t *testing.T) {
	for _, waits := range []bool{false, true} {
		ops := opsOfLockAndRelease(t, waits)
		for i, op := range ops {
			nth := 0
			for _, o := range ops[:i+1] {
				if o == op {
					nth++
				}
			}
			for fault, lose := range map[string]func(*zktest.Server, zktest.Op, int){
				"reply": (*zktest.Server).LoseReply, "request": (*zktest.Server).LoseRequest,
			} {
				t.Run(fmt.Sprintf("waits=%v/%v %v of %d is lost", waits, fault, op, nth), func(t *testing.T) {
					locktest.Run(t, func(e *locktest.Env) {
						lockAndRelease(e, waits, func() { lose(e.Server, op, nth) })
						e.Empty()
						e.Release(e.Lock(e.New()))
					})
				})
			}
		}
	}
}

// opsOfLockAndRelease lists what the server is asked for in lockAndRelease.
func opsOfLockAndRelease(t *testing.T, waits bool) (ops []zktest.Op) {
	locktest.Run(t, func(e *locktest.Env) {
		lockAndRelease(e, waits, func() {
			e.OnRequest(func(r zktest.Request) { ops = append(ops, r.Op) })
		})
		e.OnRequest(nil)
	})
	if len(ops) < 4 {
		t.Fatalf("only %v seen", ops)
	}
	return ops
}

// lockAndRelease takes the lock and gives it back, with or without somebody who
// holds it at first. It calls ready when the session stands.
func lockAndRelease(e *locktest.Env, waits bool, ready func()) {
	m := e.New()
	if !waits {
		ready()
		e.Release(e.Lock(m))
		return
	}
	held := e.Lock(e.New())
	ready()
	a := e.Start(m.Lock)
	time.Sleep(3 * time.Second)
	if err := held.Release(e.T.Context()); err != nil {
		e.T.Error(err)
	}
	e.Release(a.Grant(time.Minute))
}
