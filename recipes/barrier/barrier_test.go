package barrier_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/barrier"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func gate(e *locktest.Env, s *session.Session) *barrier.Barrier {
	e.T.Helper()
	b, err := barrier.New(s, locktest.Path)
	if err != nil {
		e.T.Fatal(err)
	}
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func wait(e *locktest.Env, b *barrier.Barrier) chan error {
	done := make(chan error, 1)
	go func() { done <- b.Wait(e.T.Context()) }()
	return done
}

// pending reports whether nothing has come when nothing more happens.
func pending(c chan error) bool {
	synctest.Wait()
	return len(c) == 0
}

func TestBarrierIsSetAndRemoved(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		setter := e.Open()
		b, s := gate(e, setter), e.Open()
		must(t, gate(e, s).Wait(e.T.Context()))
		must(t, b.Remove(e.T.Context()))
		for range 3 {
			must(t, b.Set(e.T.Context()))
			must(t, gate(e, s).Set(e.T.Context())) // it is set
			var waiting []chan error
			for i := range 20 {
				w := s
				if i%5 == 0 {
					w = e.Open()
				}
				waiting = append(waiting, wait(e, gate(e, w)))
			}
			time.Sleep(time.Minute)
			e.Expire(s.ID())
			e.Expire(setter.ID()) // it is nobody's
			time.Sleep(time.Minute)
			for _, w := range waiting {
				if !pending(w) {
					t.Fatal("passed")
				}
			}
			must(t, b.Remove(e.T.Context()))
			for _, w := range waiting {
				must(t, locktest.Await(e, w))
			}
			must(t, b.Remove(e.T.Context()))
		}
		time.Sleep(5 * time.Minute)
		if e.Exists("/locks") {
			t.Errorf("left behind:\n%s", e.Tree())
		}
	})
}

func TestAnswersOfABarrierAreLost(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for _, lose := range []func(*zktest.Server, zktest.Op, int){(*zktest.Server).LoseReply, (*zktest.Server).LoseRequest} {
			locktest.Run(t, func(e *locktest.Env) {
				b := gate(e, e.Open())
				for i := range n {
					lose(e.Server, zktest.OpMulti, 1+i)
				}
				must(t, b.Set(e.T.Context()))
				w := wait(e, gate(e, e.Open()))
				if !pending(w) {
					t.Error("passed")
				}
				must(t, b.Remove(e.T.Context()))
				must(t, locktest.Await(e, w))
			})
		}
	}
}

// A barrier is set, which the follower to which we are connected has not heard of.
func TestBarrierIsSetWhileTheFollowerLags(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s, setter := e.Open(), gate(e, e.Open())
		e.StaleReads(s.ID(), true)
		must(t, setter.Set(e.T.Context()))
		w := wait(e, gate(e, s))
		if !pending(w) {
			e.T.Fatal("passed a barrier that was set before")
		}
		must(t, setter.Remove(e.T.Context()))
		must(t, locktest.Await(e, w))

		e.StaleReads(s.ID(), true)
		must(t, setter.Set(e.T.Context()))
		must(t, gate(e, s).Remove(e.T.Context()))
		if e.Exists(locktest.Path) {
			t.Error("not removed")
		}
	})
}

func TestWaitEndsOtherwise(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		b := gate(e, s)
		must(t, b.Set(e.T.Context()))
		ctx, cancel := context.WithTimeout(e.T.Context(), time.Minute)
		defer cancel()
		if err := b.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		for _, f := range []func(context.Context) error{b.Set, b.Remove, b.Wait} {
			if err := f(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		w := wait(e, b)
		synctest.Wait()
		s.Close()
		if err := locktest.Await(e, w); !errors.Is(err, recipes.ErrSessionClosed) {
			t.Error(err)
		}
	})
}

func TestPathOfABarrierIsAnothers(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		g := e.Lock(e.New())
		b := gate(e, e.Open())
		for _, f := range []func(context.Context) error{b.Set, b.Remove, b.Wait} {
			if err := f(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
				t.Error(err)
			}
		}
		if _, err := double(e, e.Open(), 2).Enter(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
		e.Release(g)
		e.DeleteAll(locktest.Path)
		must(t, b.Set(e.T.Context()))
		if _, err := e.New().Lock(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
		if _, err := double(e, e.Open(), 2).Enter(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
		e.Create(locktest.Path+"/x", nil)
		if err := b.Remove(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
	})
}

func TestBadArguments(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		e.ResetCounts()
		check := func(err error) {
			t.Helper()
			if !errors.Is(err, recipes.ErrInvalid) {
				t.Error(err)
			}
		}
		_, err := barrier.New(nil, "/x")
		check(err)
		_, err = barrier.New(s, "x")
		check(err)
		for _, size := range []int{-1, 0, barrier.MaxSize + 1} {
			_, err = barrier.NewDouble(s, "/x", size)
			check(err)
		}
		_, err = barrier.NewDouble(nil, "/x", 1)
		check(err)
		_, err = barrier.NewDouble(s, "/x/", 1)
		check(err)
		for _, o := range []recipes.Option{nil, recipes.Reentrant(), recipes.LockDelay(time.Second), recipes.Extension(1)} {
			_, err = barrier.NewDouble(s, "/x", 1, o)
			check(err)
		}
		if n := e.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}
