package interop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/interop"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// locker is one contender, ours or another library's.
type locker interface {
	Lock(context.Context) error
	Release(context.Context) error
}

type ours struct {
	acquire func(context.Context) (*recipes.Grant, error)
	grant   *recipes.Grant
}

func (o *ours) Lock(ctx context.Context) (err error) {
	o.grant, err = o.acquire(ctx)
	return err
}

func (o *ours) Release(ctx context.Context) error { return o.grant.Release(ctx) }

// The locks of other libraries, as they come, work on zktest: among themselves,
// and with ours.
func TestOthersOnZktest(t *testing.T) {
	srv := zktest.Start(t, zktest.AllowOpenSessions()) // killed clients leave theirs
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Minute, errors.New("the test has waited for too long"))
	t.Cleanup(cancel)
	sess, err := session.Open(ctx, session.Config{Servers: []string{srv.Addr()}, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sess.Close() })
	mutexOn := func(t *testing.T, path string) locker {
		m, err := mutex.New(sess, path)
		if err != nil {
			t.Fatal(err)
		}
		return &ours{acquire: m.Lock}
	}
	rwOn := func(t *testing.T, path string) (read, write locker) {
		l, err := rwlock.New(sess, path)
		if err != nil {
			t.Fatal(err)
		}
		return &ours{acquire: l.RLock}, &ours{acquire: l.Lock}
	}
	for _, test := range []struct {
		name string
		pair func(t *testing.T, path string) (a, b locker)
	}{
		{"KazooAndKazoo", func(t *testing.T, path string) (a, b locker) {
			return interop.Kazoo(t, srv.Addr(), path, timeout), interop.Kazoo(t, srv.Addr(), path, timeout)
		}},
		{"KazooAndOurs", func(t *testing.T, path string) (a, b locker) {
			return interop.Kazoo(t, srv.Addr(), path, timeout), mutexOn(t, path)
		}},
		{"CuratorAndOurs", func(t *testing.T, path string) (a, b locker) {
			return interop.CuratorMutex(t, srv.Addr(), path, timeout), mutexOn(t, path)
		}},
		{"CuratorReadAndWrite", func(t *testing.T, path string) (a, b locker) {
			return interop.CuratorRead(t, srv.Addr(), path, timeout), interop.CuratorWrite(t, srv.Addr(), path, timeout)
		}},
		{"CuratorReadAndOurWrite", func(t *testing.T, path string) (a, b locker) {
			_, write := rwOn(t, path)
			return interop.CuratorRead(t, srv.Addr(), path, timeout), write
		}},
		{"CuratorWriteAndOurRead", func(t *testing.T, path string) (a, b locker) {
			read, _ := rwOn(t, path)
			return interop.CuratorWrite(t, srv.Addr(), path, timeout), read
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := "/" + test.name
			a, b := test.pair(t, path)
			for range 2 { // on a fresh directory, and on one that has been used
				takeTurns(ctx, t, srv, path, a, b)
				takeTurns(ctx, t, srv, path, b, a)
			}
			if left := srv.Children(path); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// takeTurns checks that second is in line, and waits, while first holds the lock,
// and has it once first has given it up.
func takeTurns(ctx context.Context, t *testing.T, srv *zktest.Server, path string, first, second locker) {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(first.Lock(ctx))
	watched := srv.Watches()
	got := make(chan error, 1)
	go func() { got <- second.Lock(ctx) }()
	// Who is in line and has set a watch has looked, and found that it must wait.
	ok(srv.WaitFor(ctx, func(v *zktest.View) bool {
		return len(v.Children(path)) == 2 && v.Watches() > watched
	}))
	select {
	case err := <-got:
		t.Fatalf("does not wait: %v", err)
	default:
	}
	ok(first.Release(ctx))
	ok(<-got)
	ok(second.Release(ctx))
}

// ZooKeeper's own command line works on zktest.
func TestZkCliOnZktest(t *testing.T) {
	srv := zktest.Start(t)
	out := strings.Join(interop.ZkCli(t, srv.Addr(), "create /x data", "ls -R /", "whoami"), "\n")
	for _, want := range []string{"Created /x", "/zookeeper/quota", "ip: 127.0.0.1"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if data, _ := srv.Data("/x"); string(data) != "data" {
		t.Errorf("/x is %q", data)
	}
}
