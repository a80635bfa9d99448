package mutex_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
)

// Philosophers who each take two of five locks, given in the worst order, all eat.
func TestAllDoesNotDeadlock(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		paths := []string{"/forks/0", "/forks/1", "/forks/2", "/forks/3", "/forks/4"}
		var wg sync.WaitGroup
		for i := range paths {
			s := e.Open()
			left, right := e.MutexAt(s, paths[i]), e.MutexAt(s, paths[(i+1)%len(paths)])
			wg.Go(func() {
				for range 10 {
					g := e.Start(func(ctx context.Context) (*recipes.Grant, error) { return recipes.All(ctx, left, right) }).Grant(time.Minute)
					time.Sleep(10 * time.Millisecond)
					e.Release(g)
				}
			})
		}
		wg.Wait()
	})
}

// Two programs lock on two ensembles, one of which they know by different servers. They
// take the locks in the same order all the same.
func TestAllSortsAlikeUnderOtherNames(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		known := func(server string) *session.Session {
			return e.Open(func(c *session.Config) { c.Servers = []string{server} })
		}
		other := known("b:2181")
		var wg sync.WaitGroup
		for _, name := range []string{"a:2181", "c:2181"} {
			x, y := e.MutexAt(known(name), "/x"), e.MutexAt(other, "/y")
			wg.Go(func() {
				for range 10 {
					g := e.Start(func(ctx context.Context) (*recipes.Grant, error) { return recipes.All(ctx, x, y) }).Grant(time.Minute)
					time.Sleep(10 * time.Millisecond)
					e.Release(g)
				}
			})
		}
		wg.Wait()
	})
}

// One deadline for all: what was taken before it is given back.
func TestAllMeetsItsDeadline(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		a, b := e.MutexAt(s, "/a"), e.MutexAt(s, "/b")
		held := e.Lock(e.MutexAt(e.Open(), "/b"))
		ctx, cancel := context.WithTimeout(e.T.Context(), time.Second)
		defer cancel()
		start := time.Now()
		g, err := recipes.All(ctx, b, a)
		if g != nil || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v, %v after %v", g, err, time.Since(start))
		}
		time.Sleep(100 * time.Millisecond)
		if len(e.Children("/a")) != 0 || len(e.Children("/b")) != 1 {
			t.Errorf("left: %q %q", e.Children("/a"), e.Children("/b"))
		}
		e.Release(held)
		if _, err := recipes.All(e.T.Context(), a, b, e.MutexAt(s, "/a")); !errors.Is(err, recipes.ErrDeadlock) {
			t.Errorf("the same lock twice: %v", err)
		}
	})
}
