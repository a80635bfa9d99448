package mutex_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

const delay = 30 * time.Second

// A holder with a lock delay dies: the next waits, once, whoever it is.
func TestHolderWithLockDelayDies(t *testing.T) {
	for name, die := range map[string]func(e *locktest.Env, id int64, g *recipes.Grant){
		"expired": func(e *locktest.Env, id int64, g *recipes.Grant) { e.Expire(id) },
		"deleted": func(e *locktest.Env, id int64, g *recipes.Grant) { e.Delete(nodeOf(e, g)) },
	} {
		for _, waiting := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				locktest.Run(t, func(e *locktest.Env) {
					s := e.Open()
					g := e.Lock(e.Mutex(s, recipes.LockDelay(delay)))
					m := e.New()
					var a *locktest.Attempt
					if waiting {
						a = e.Start(m.Lock)
						e.Queued(2)
					}
					time.Sleep(time.Hour)
					died := time.Now()
					die(e, s.ID(), g)
					<-g.Done()
					if !waiting {
						a = e.Start(m.Lock)
					}
					if _, err := e.New().TryLock(e.T.Context()); !errors.Is(err, recipes.ErrBusy) {
						t.Errorf("TryLock meanwhile: %v", err)
					}
					g = a.Grant(time.Minute)
					if d := time.Since(died); d < delay || d > delay+time.Second {
						t.Errorf("granted after %v", d)
					}
					e.Release(g)
					start := time.Now()
					e.Release(e.Lock(m)) // once
					if d := time.Since(start); d > time.Second {
						t.Errorf("and again %v", d)
					}
				})
			})
		}
	}
}

// Nobody is in line for long after the death: the record must not be reaped.
func TestDirectoryIsIdleDuringTheLockDelay(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m := e.New()
		for round := range 3 {
			g := e.Lock(e.New(recipes.LockDelay(time.Hour)))
			e.Delete(nodeOf(e, g))
			died := time.Now()
			<-g.Done()
			time.Sleep(10 * time.Minute)
			if _, err := m.TryLock(e.T.Context()); !errors.Is(err, recipes.ErrBusy) {
				t.Errorf("round %d: TryLock after ten minutes: %v", round, err)
			}
			time.Sleep(10 * time.Minute)
			g = e.Start(m.Lock).Grant(2 * time.Hour)
			// What is left counts from the first who looked.
			if d := time.Since(died); d < time.Hour || d > 70*time.Minute+time.Second {
				t.Errorf("round %d: granted after %v", round, d)
			}
			if cs, err := m.Contenders(e.T.Context()); err != nil || len(cs) != 1 {
				t.Errorf("%v, %v", cs, err)
			}
			e.Release(g)
			e.Empty() // nothing that keeps the directory
		}
		time.Sleep(2 * time.Minute)
		if e.Exists(locktest.Path) {
			t.Errorf("the directory stays for ever\n%s", e.Tree())
		}
	})
}

// The delay is counted once, also if those first in line give up or die.
func TestFirstInLineGivesUpDuringTheLockDelay(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		g := e.Lock(e.Mutex(s, recipes.LockDelay(delay)))
		died := time.Now()
		e.Delete(nodeOf(e, g))
		<-g.Done()
		for range 4 { // 20 of 30 seconds
			a := e.Start(e.New(recipes.LockDelay(time.Hour)).Lock)
			time.Sleep(4 * time.Second)
			if !a.Pending() {
				t.Fatal("granted")
			}
			a.Cancel()
			a.Fails(time.Second, context.Canceled)
			time.Sleep(time.Second)
			if _, err := e.New().TryLock(e.T.Context()); !errors.Is(err, recipes.ErrBusy) {
				t.Errorf("TryLock: %v", err)
			}
		}
		s2 := e.Open()
		e.Start(e.Mutex(s2, recipes.FailOnLoss()).Lock)
		e.Queued(1)
		last := e.Start(e.New().Lock)
		e.Queued(2)
		e.Expire(s2.ID())
		g = last.Grant(time.Minute)
		if d := time.Since(died); d < delay || d > delay+time.Second {
			t.Errorf("granted after %v", d)
		}
		e.Release(g)
		e.Release(e.Start(e.New().TryLock).Grant(time.Second))
		time.Sleep(10 * time.Second)
	})
}

// No delay: after a release, a waiter that gave up, a waiter that died, a session
// that was closed, a release that took several tries.
func TestNobodyDied(t *testing.T) {
	for name, leave := range map[string]func(e *locktest.Env, m recipes.Lockable, id int64, closeSession func() error){
		"released": func(e *locktest.Env, m recipes.Lockable, id int64, _ func() error) { e.Release(e.Lock(m)) },
		"released, answer lost": func(e *locktest.Env, m recipes.Lockable, id int64, _ func() error) {
			g := e.Lock(m)
			e.LoseReply(zktest.OpMulti, 1)
			e.LoseRequest(zktest.OpMulti, 2)
			e.Release(g)
		},
		"announcement's answer lost": func(e *locktest.Env, m recipes.Lockable, id int64, _ func() error) {
			e.LoseReply(zktest.OpMulti, 1)
			e.LoseReply(zktest.OpMulti, 2)
			e.Release(e.Lock(m))
		},
		"waiter gave up": func(e *locktest.Env, m recipes.Lockable, id int64, _ func() error) {
			g := e.Lock(e.New())
			a := e.Start(m.Lock)
			e.Queued(2)
			a.Cancel()
			a.Fails(time.Second, context.Canceled)
			e.Release(g)
		},
		"waiter died": func(e *locktest.Env, m recipes.Lockable, id int64, _ func() error) {
			g := e.Lock(e.New())
			a := e.Start(m.Lock)
			e.Queued(2)
			e.Expire(id)
			e.Queued(1)
			a.Cancel()
			e.Release(g)
			time.Sleep(10 * time.Second)
		},
		"released, after somebody had removed what keeps the record": func(e *locktest.Env, m recipes.Lockable, id int64, _ func() error) {
			g := e.Lock(m)
			e.Delete(locktest.Path + "/delay-2147483647")
			e.Release(g)
		},
		"closed": func(e *locktest.Env, m recipes.Lockable, id int64, closeSession func() error) {
			e.Lock(m)
			closeSession()
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) {
				s := e.Open()
				m := e.Mutex(s, recipes.LockDelay(time.Hour))
				e.Release(e.Lock(m))
				leave(e, m, s.ID(), s.Close)
				e.Empty()
				start := time.Now()
				e.Release(e.Start(e.New().TryLock).Grant(time.Minute))
				if d := time.Since(start); d > time.Second {
					t.Errorf("granted after %v", d)
				}
			})
		})
	}
}

// A revocation of the program's own counts as a death.
func TestMaxHoldWithLockDelay(t *testing.T) {
	for _, withDelay := range []bool{true, false} {
		locktest.Run(t, func(e *locktest.Env) {
			opts := []recipes.Option{recipes.MaxHold(time.Minute)}
			if withDelay {
				opts = append(opts, recipes.LockDelay(delay))
			}
			g := e.Lock(e.New(opts...))
			start := time.Now()
			a := e.Start(e.New().Lock)
			<-g.Done()
			if d := time.Since(start); d != time.Minute || !errors.Is(g.Err(), recipes.ErrHeldTooLong) || !errors.Is(g.Err(), recipes.ErrRevoked) {
				t.Errorf("after %v: %v", d, g.Err())
			}
			if err := g.Release(e.T.Context()); !errors.Is(err, recipes.ErrHeldTooLong) {
				t.Errorf("Release: %v", err)
			}
			next := a.Grant(time.Minute)
			d := time.Since(start) - time.Minute
			if withDelay && (d < delay || d > delay+time.Second) || !withDelay && d > time.Second {
				t.Errorf("with delay %v: the next after %v", withDelay, d)
			}
			e.Release(next)
			e.Empty()
		})
	}
}

// A delay belongs to one holder: those after it are not delayed for its sake.
func TestDelayOfAnEarlierHolder(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		g := e.Lock(e.New(recipes.LockDelay(delay)))
		e.Delete(nodeOf(e, g))
		s := e.Open()
		g = e.Start(e.Mutex(s).Lock).Grant(time.Minute) // without a delay
		time.Sleep(time.Hour)
		start := time.Now()
		e.Expire(s.ID())
		e.Release(e.Start(e.New().Lock).Grant(time.Minute))
		if d := time.Since(start); d > time.Second {
			t.Errorf("delayed for %v", d)
		}
		<-g.Done()
	})
}

// The first in line loses the connection, or its node, during the delay.
func TestConnectionIsLostDuringTheLockDelay(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		g := e.Lock(e.New(recipes.LockDelay(delay)))
		died := time.Now()
		e.Delete(nodeOf(e, g))
		s := e.Open()
		e.LoseReply(zktest.OpMulti, 1) // the note of the death
		a := e.Start(e.Mutex(s).Lock)
		time.Sleep(5 * time.Second)
		e.Cut(s.ID())
		time.Sleep(5 * time.Second)
		e.Delete(nodeAt(e, 0))
		time.Sleep(5 * time.Second)
		if !a.Pending() {
			t.Fatal("granted")
		}
		g = a.Grant(time.Minute)
		if d := time.Since(died); d < delay || d > delay+5*time.Second {
			t.Errorf("granted after %v", d)
		}
		e.Release(g)
	})
}
