package fair_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/interop"
	"github.com/lockkeeper/lockkeeper/integration/witness"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
)

// acquire is Lock of whatever lock.
type acquire func(context.Context) (*recipes.Grant, error)

// A mutex, a fair lock without flows and flows of all kinds are one lock.
func TestMutexAndFlowsExcludeEachOther(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	e := ensemble.Single(t, ensemble.Options{})
	path := "/mixed"
	look := ensemble.Connect(t, 10*time.Second, e.Servers()...)
	of := func(opts ...recipes.Option) func(*session.Session) acquire {
		return func(s *session.Session) acquire { return newLock(t, s, path, opts...).Lock }
	}
	kinds := []func(*session.Session) acquire{
		func(s *session.Session) acquire {
			m, err := mutex.New(s, path)
			if err != nil {
				t.Fatal(err)
			}
			return m.Lock
		},
		of(),
		of(fair.Flow("narrow", 1)),
		of(fair.Flow("wide", 5)),
		of(fair.Flow("timed", 1), fair.ByHoldTime()),
	}
	w := witness.New(t)
	ctx := await.Context(t)
	var wg sync.WaitGroup
	clients := 0
	for _, kind := range kinds {
		for range 2 { // sessions
			take := kind(ensemble.Open(t, 30*time.Second, e.Servers()...))
			for range 2 {
				clients++
				wg.Go(func() {
					v, err := witness.Visit(w.Addr())
					if err != nil {
						t.Error(err)
						return
					}
					defer v.Close()
					for range rounds {
						err := recipes.Do(ctx, take, func(_ context.Context, g *recipes.Grant) error {
							if err := v.Enter(g.Token()); err != nil {
								return err
							}
							return v.Leave()
						})
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
	}
	wg.Wait()
	if want := clients * rounds; w.Uses() != want {
		t.Errorf("the lock was had %d times, want %d", w.Uses(), want)
	}
	nothingLeft(t, look, path, "narrow", "wide", "timed")
}

// Locks of other libraries, which know nothing of flows, stand in the same queue.
func TestFlowsAndOtherLibraries(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	server := e.Server(0)
	const timeout = 10 * time.Second
	for _, test := range []struct {
		name string
		lock func(t *testing.T, path string) *interop.Client
	}{
		{"Kazoo", func(t *testing.T, path string) *interop.Client { return interop.Kazoo(t, server, path, timeout) }},
		{"Curator", func(t *testing.T, path string) *interop.Client {
			return interop.CuratorMutex(t, server, path, timeout)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := "/beside-" + test.name
			look := ensemble.Connect(t, 10*time.Second, server)
			l := newLock(t, ensemble.Open(t, timeout, server), path, fair.Flow("ours", 1))
			theirs := test.lock(t, path)
			ctx := await.Context(t)
			ok := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // on a fresh directory, and on one that has been used
				ok(theirs.Lock(ctx))
				if _, err := l.TryLock(ctx); !errors.Is(err, recipes.ErrBusy) {
					t.Fatalf("they hold the lock: %v", err)
				}
				inLine, behind := join(t, l), join(t, l)
				await.Until(t, "one of ours to stand in line", func() bool { return children(t, look, mainQueue(path)) == 2 })
				ok(theirs.Release(ctx))
				g, err := inLine.Wait(ctx)
				ok(err)
				// One of ours holds, one is in line: they come after that.
				await.Until(t, "the second of ours to stand in line", func() bool { return children(t, look, mainQueue(path)) == 2 })
				got := make(chan error, 1)
				go func() { got <- theirs.Lock(ctx) }()
				await.Until(t, "theirs to stand in line", func() bool { return children(t, look, mainQueue(path)) == 3 })
				await.Release(t, g)
				g, err = behind.Wait(ctx)
				ok(err)
				interop.Waits(t, e, path, got)
				await.Release(t, g)
				ok(<-got)
				ok(theirs.Release(ctx))
			}
			nothingLeft(t, look, path, "ours")
		})
	}
}
