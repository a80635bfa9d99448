// Package fair_test runs the fair lock on real servers: sessions and processes that
// die at every place of the queue, and beside the locks of others.
package fair_test

import (
	"errors"
	"os"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/ensemble"
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

func newLock(t *testing.T, s *session.Session, path string, opts ...recipes.Option) *fair.Lock {
	t.Helper()
	l, err := fair.New(s, path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func join(t *testing.T, l *fair.Lock) *fair.Ticket {
	t.Helper()
	ticket, err := l.Join(await.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	return ticket
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

// nothingLeft waits until nobody's node is left in the queues of a lock and its flows.
func nothingLeft(t *testing.T, c *zk.Conn, path string, flows ...string) {
	t.Helper()
	dirs := []string{mainQueue(path)}
	for _, f := range flows {
		dirs = append(dirs, gateQueue(path, f), line(path, f))
	}
	ensemble.Empty(t, c, dirs...)
}
