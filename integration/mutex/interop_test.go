package mutex_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/interop"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// other is a lock of another library.
type other interface {
	Lock(context.Context) error
	Release(context.Context) error
}

// goZK is go-zookeeper's own lock.
type goZK struct{ lock *zk.Lock }

func (l goZK) Lock(context.Context) error    { return l.lock.Lock() }
func (l goZK) Release(context.Context) error { return l.lock.Unlock() }

func TestOtherLibraries(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	server := e.Server(0)
	const timeout = 10 * time.Second
	for _, test := range []struct {
		name string
		lock func(t *testing.T, path string) other
	}{
		{"Kazoo", func(t *testing.T, path string) other { return interop.Kazoo(t, server, path, timeout) }},
		{"Curator", func(t *testing.T, path string) other { return interop.CuratorMutex(t, server, path, timeout) }},
		{"GoZookeeper", func(t *testing.T, path string) other {
			c := ensemble.Connect(t, timeout, server)
			return goZK{zk.NewLock(c, path, zk.WorldACL(zk.PermAll))}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := e.LockPath(t)
			m := newMutex(t, ensemble.Open(t, timeout, server), path)
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
				if _, err := m.TryLock(ctx); !errors.Is(err, recipes.ErrBusy) {
					t.Fatalf("they hold the lock: %v", err)
				}
				ours := await.Later(t, m.Lock)
				await.InLine(t, m, 2)
				ok(theirs.Release(ctx))
				g := ours.Grant(t)

				got := make(chan error, 1)
				go func() { got <- theirs.Lock(ctx) }()
				await.InLine(t, m, 2)
				interop.Waits(t, e, path, got)
				await.Release(t, g)
				ok(<-got)
				ok(theirs.Release(ctx))
			}
		})
	}
}
