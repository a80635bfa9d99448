// Package fair_test runs the fair lock on real servers: sessions and processes that
// die at every place of the queue, and beside the locks of others.
package fair_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/session"
)

// TestMain is also that of the processes which tests start of themselves.
func TestMain(m *testing.M) {
	if job := os.Getenv(victimEnv); job != "" {
		os.Exit(victim(job))
	}
	os.Exit(m.Run())
}

// patience bounds what has to happen some time, and decides about nothing else.
const patience = 2 * time.Minute

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("the test has waited for too long"))
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, timeout time.Duration, servers ...string) *session.Session {
	t.Helper()
	s, err := session.Open(bounded(t), session.Config{
		Servers: servers,
		Timeout: timeout,
		Logger:  slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newLock(t *testing.T, s *session.Session, path string, opts ...recipes.Option) *fair.Lock {
	t.Helper()
	l, err := fair.New(s, path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func lock(t *testing.T, l *fair.Lock) *recipes.Grant {
	t.Helper()
	g, err := l.Lock(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func join(t *testing.T, l *fair.Lock) *fair.Ticket {
	t.Helper()
	ticket, err := l.Join(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func release(t *testing.T, g *recipes.Grant) {
	t.Helper()
	if err := g.Release(bounded(t)); err != nil {
		t.Error(err)
	}
}

// raw returns a session of the raw client, closed at the end of the test.
func raw(t *testing.T, servers ...string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect(servers, 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// until waits for a state of the server's nodes.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for ctx := bounded(t); !cond(); time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("waited for %s: %v", what, context.Cause(ctx))
		}
	}
}

// owners returns the sessions whose nodes are in a directory; none if it is not there.
func owners(t *testing.T, c *zk.Conn, dir string) map[int64]bool {
	t.Helper()
	out := make(map[int64]bool)
	names, _, err := c.Children(dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
	for _, name := range names {
		there, stat, err := c.Exists(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if there {
			out[stat.EphemeralOwner] = true
		}
	}
	return out
}

func mainQueue(path string) string { return path }

func gateQueue(path, flow string) string { return path + ".flows/" + flow + "/queue" }

func line(path, flow string) string { return path + ".flows/" + flow + "/line" }

// nothingLeft waits until nobody's node is left: what belonged to a client that died
// goes when its session expires.
func nothingLeft(t *testing.T, c *zk.Conn, path string, flows ...string) {
	t.Helper()
	dirs := []string{mainQueue(path)}
	for _, f := range flows {
		dirs = append(dirs, gateQueue(path, f), line(path, f))
	}
	for _, dir := range dirs {
		until(t, dir+" to be empty", func() bool { return len(owners(t, c, dir)) == 0 })
	}
}
