package ensemble

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/session"
)

// Open opens a session, closed at the end of the test. What it logs is part of the
// test's output.
func Open(t testing.TB, timeout time.Duration, servers ...string) *session.Session {
	t.Helper()
	s, err := session.Open(await.Context(t), session.Config{
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

// Connect returns a session of the raw client, closed at the end of the test.
func Connect(t testing.TB, timeout time.Duration, servers ...string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect(servers, timeout, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// LockPath returns a path for the locks of a test, and sees to it that nothing is left
// there when the test is over, unless it has failed. It has to be called before the
// sessions are opened.
func (e *Ensemble) LockPath(t testing.TB) string {
	t.Helper()
	path := "/" + strings.ReplaceAll(t.Name(), "/", "-")
	t.Cleanup(func() {
		if !t.Failed() {
			Empty(t, Connect(t, 10*time.Second, e.Servers()...), path)
		}
	})
	return path
}

// Empty waits until directories are empty or gone: what belonged to a client that
// died or was cut off goes when its session expires.
func Empty(t testing.TB, c *zk.Conn, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		for end := time.Now().Add(await.Patience); ; time.Sleep(20 * time.Millisecond) {
			left, _, err := c.Children(dir)
			if errors.Is(err, zk.ErrNoNode) || err == nil && len(left) == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("left behind below %s: %q, %v", dir, left, err)
			}
		}
	}
}
