package interop_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/interop"
)

const timeout = 10 * time.Second

// a wait that ends with "busy" has to end at some time; a lock that is not
// respected is had long before
const patience = time.Second

func TestOthersExcludeEachOther(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	server := e.Server(0)
	for _, test := range []struct {
		name string
		a, b func(path string) *interop.Client
	}{
		{
			"KazooAndCurator",
			func(path string) *interop.Client { return interop.KazooNamed(t, server, path, "lock-", timeout) },
			func(path string) *interop.Client { return interop.CuratorMutex(t, server, path, timeout) },
		},
		{
			"KazooAndKazoo",
			func(path string) *interop.Client { return interop.Kazoo(t, server, path, timeout) },
			func(path string) *interop.Client { return interop.Kazoo(t, server, path, timeout) },
		},
		{
			"CuratorReadAndWrite",
			func(path string) *interop.Client { return interop.CuratorRead(t, server, path, timeout) },
			func(path string) *interop.Client { return interop.CuratorWrite(t, server, path, timeout) },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := "/" + test.name
			a, b := test.a(path), test.b(path)
			exclude(t, a, b)
			exclude(t, b, a)
		})
	}
}

// exclude checks that second does not get the lock while first holds it, and
// gets it when first gives it up.
func exclude(t *testing.T, first, second *interop.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(first.Lock(ctx))
	if err := second.Try(ctx, patience); !errors.Is(err, interop.ErrBusy) {
		t.Fatalf("lock is held: %v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- second.Lock(ctx) }()
	ok(first.Release(ctx))
	ok(<-waited)
	ok(second.Release(ctx))
}

// Curator knows one name only: kazoo's Lock as it comes waits for Curator's, and
// is itself ignored by it. This says why KazooNamed exists; if it fails, that
// has changed for the better.
func TestCuratorIgnoresKazooAsItComes(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kazoo := interop.Kazoo(t, e.Server(0), "/lock", timeout)
	curator := interop.CuratorMutex(t, e.Server(0), "/lock", timeout)
	if err := kazoo.Lock(ctx); err != nil {
		t.Fatal(err)
	}
	if err := curator.Try(ctx, patience); err != nil {
		t.Fatalf("Curator respects kazoo's node: %v", err)
	}
	if err := kazoo.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := kazoo.Try(ctx, patience); !errors.Is(err, interop.ErrBusy) {
		t.Fatalf("kazoo does not respect Curator's node: %v", err)
	}
}

// A client that is killed tells nobody: its node is there until its session ends.
func TestKilledClientLeavesItsNode(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kazoo := interop.Kazoo(t, e.Server(0), "/lock", 2*time.Second)
	if err := kazoo.Lock(ctx); err != nil {
		t.Fatal(err)
	}
	kazoo.Kill()
	ensemble.Empty(t, ensemble.Connect(t, timeout, e.Servers()...), "/lock")
}
