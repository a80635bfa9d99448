package mutex_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A way to a grant, up to where it ends or is given up.
var ways = map[string]struct {
	opts []recipes.Option
	lock func(*mutex.Mutex) func(context.Context) (*recipes.Grant, error)
	held bool // by another, for two seconds more
}{
	"free":              {nil, lockOf, false},
	"held":              {nil, lockOf, true},
	"free, try":         {nil, tryOf, false},
	"held, try":         {nil, tryOf, true},
	"free, with delay":  {[]recipes.Option{recipes.LockDelay(time.Hour)}, lockOf, false},
	"held, with delay":  {[]recipes.Option{recipes.LockDelay(time.Hour)}, lockOf, true},
	"tried, with delay": {[]recipes.Option{recipes.LockDelay(time.Hour)}, tryOf, false},
}

func lockOf(m *mutex.Mutex) func(context.Context) (*recipes.Grant, error) { return m.Lock }
func tryOf(m *mutex.Mutex) func(context.Context) (*recipes.Grant, error)  { return m.TryLock }

// case 5, case 8: ctx ends with each request that the server sees.
func TestContextEndsAtEachRequest(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			steps := 1
			for step := 1; step <= steps; step++ {
				locktest.Run(t, func(e *locktest.Env) {
					s := e.Open()
					seen := interrupt(e, s, way.held, way.opts, way.lock, func(cancel func()) {
						n := 0
						e.OnRequest(func(r zktest.Request) {
							if r.Session == s.ID() && r.Op != zktest.OpPing {
								if n++; n == step {
									cancel()
								}
							}
						})
					}, func() { e.OnRequest(nil) })
					if step == 1 {
						steps = seen
					}
				})
			}
			if steps < 2 {
				t.Errorf("only %d steps", steps)
			}
			t.Logf("%d steps", steps)
		})
	}
}

// case 5, case 8: ctx ends in each millisecond, with answers that take three: in its middle,
// since at the instant at which an answer comes it may as well end just after the grant.
func TestContextEndsAtEachMillisecond(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			for ms := range 40 {
				if ms >= 20 && way.held {
					ms += 2000 - 20 // from the release on
				}
				locktest.Run(t, func(e *locktest.Env) {
					s := e.Open()
					interrupt(e, s, way.held, way.opts, way.lock, func(cancel func()) {
						e.Delay(3 * time.Millisecond)
						time.AfterFunc(time.Duration(ms)*time.Millisecond+time.Millisecond/2, cancel)
					}, func() { e.Delay(0) })
				})
			}
		})
	}
}

// interrupt has an attempt of s disturbed, and checks that whatever comes of it,
// nothing is left behind and nobody is kept from the lock. It returns how many
// requests the undisturbed attempt takes.
func interrupt(e *locktest.Env, s *session.Session, held bool, opts []recipes.Option,
	lock func(*mutex.Mutex) func(context.Context) (*recipes.Grant, error), disturb func(cancel func()), calm func()) (requests int) {
	other := e.New()
	var g *recipes.Grant
	if held {
		g = e.Lock(other)
	}
	m := e.Mutex(s, opts...)
	measured := make(chan int, 1)
	func() { // once undisturbed, to count
		e.ResetCounts()
		a := e.Start(lock(m))
		if held {
			time.Sleep(2 * time.Second)
			e.Release(g)
		}
		mine, err := a.Result()
		measured <- e.Requests().Total()
		if err == nil {
			e.Release(mine)
		}
		if held {
			g = e.Lock(other)
		}
	}()
	time.Sleep(time.Second)
	a := e.Start(lock(m))
	disturb(a.Cancel)
	if held {
		time.Sleep(2 * time.Second)
		e.Release(g)
	}
	mine, err := a.Result()
	if err == nil {
		e.Release(mine)
	} else if !errors.Is(err, context.Canceled) && !errors.Is(err, recipes.ErrBusy) {
		e.T.Errorf("error %v", err)
	}
	calm()
	e.Empty()
	next, err := other.TryLock(e.T.Context())
	if err != nil {
		e.T.Fatalf("the next to try: %v; record %s", err, e.Tree())
	}
	e.Release(next)
	return <-measured
}

// case 9, case 21: nothing is answered any more.
func TestContextEndsWhileNothingIsAnswered(t *testing.T) {
	for _, state := range []string{"hole", "refused", "follower cut off"} {
		for _, op := range []string{"lock", "trylock", "contenders", "release", "verify"} {
			t.Run(state+"/"+op, func(t *testing.T) {
				locktest.Run(t, func(e *locktest.Env) {
					s := e.Open()
					m := e.Mutex(s)
					g := e.Lock(e.MutexAt(s, "/locks/other"))
					e.Release(e.Lock(m))
					switch state {
					case "hole":
						e.BlackHole(s.ID(), zktest.Both)
					case "refused":
						e.Refuse(true)
						e.Cut(0)
						time.Sleep(100 * time.Millisecond)
					case "follower cut off":
						e.CutOffFollower(s.ID())
					}
					ctx, cancel := context.WithTimeout(e.T.Context(), 50*time.Millisecond)
					defer cancel()
					start := time.Now()
					var err error
					switch op {
					case "lock":
						_, err = m.Lock(ctx)
					case "trylock":
						_, err = m.TryLock(ctx)
					case "contenders":
						_, err = m.Contenders(ctx)
					case "release":
						err = g.Release(ctx)
					case "verify":
						err = g.Verify(ctx)
					}
					if took := time.Since(start); took > 150*time.Millisecond {
						t.Errorf("returned after %v, with %v", took, err)
					}
					answered := state == "follower cut off" && op == "contenders"
					if !answered && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("error %v", err)
					}
					e.Heal()
					e.Empty()
					time.Sleep(2 * time.Second) // so that the session can be closed in order
				})
			})
		}
	}
}

// Success and an ended ctx never go together, on entry or later.
func TestContextHasEndedOnEntry(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m := e.New()
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(e.T.Context())
		cancel(cause)
		e.ResetCounts()
		for _, lock := range []func(context.Context) (*recipes.Grant, error){m.Lock, m.TryLock} {
			g, err := lock(ctx)
			var re *recipes.Error
			if g != nil || !errors.Is(err, cause) || !errors.As(err, &re) || re.Path != locktest.Path {
				t.Errorf("%v, %v", g, err)
			}
		}
		if n := e.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// A lateContext has ended, though its Done is not heard of.
type lateContext struct {
	context.Context
	over *atomic.Bool
}

func (c lateContext) Done() <-chan struct{} { return nil }

func (c lateContext) Err() error {
	if c.over.Load() {
		return context.Canceled
	}
	return nil
}

// ctx ends at the very moment when the turn comes: that is no success.
func TestContextEndsWhenTheTurnComes(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m := e.New()
		e.Release(e.Lock(m))
		for _, lock := range []func(context.Context) (*recipes.Grant, error){m.Lock, m.TryLock} {
			ctx := lateContext{context.Background(), new(atomic.Bool)}
			e.OnRequest(func(r zktest.Request) {
				if r.Op == zktest.OpCreate2 {
					ctx.over.Store(true)
				}
			})
			if g, err := lock(ctx); g != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%v, %v", g, err)
			}
			e.Empty()
		}
		e.OnRequest(nil)
	})
}
