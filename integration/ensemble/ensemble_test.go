package ensemble_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
)

const sessionTimeout = 3 * time.Second

// connect returns a session of the raw client at the given servers, closed at
// the end of the test. No watches are set with it: that client has a data race
// when it reconnects while there are any.
func connect(t *testing.T, servers ...string) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect(servers, sessionTimeout, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	go func() {
		for range events {
		}
	}()
	return c
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// write creates nodes until one creation is answered with success.
func write(t *testing.T, c *zk.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := c.Create("/w", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err == nil {
			return
		}
		if ctx.Err() != nil || errors.Is(err, zk.ErrSessionExpired) {
			t.Fatal(err)
		}
	}
}

func TestSingleServes(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	write(t, connect(t, e.Servers()...))
}

func TestServerComesBackWithItsData(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	c := connect(t, e.Servers()...)
	if _, err := c.Create("/there", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	e.Kill(t, 0)
	if m := e.Mode(0); m != "" {
		t.Fatalf("killed server is %s", m)
	}
	e.Start(t, 0)
	e.WaitReady(t)
	write(t, c)
	if there, _, err := c.Exists("/there"); err != nil || !there {
		t.Fatalf("node from before the kill: %v, %v", there, err)
	}
}

func TestLeaderKilled(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{})
	leader := e.Leader(t)
	c := connect(t, e.Servers()...)
	write(t, c)
	session, start := c.SessionID(), time.Now()
	e.Kill(t, leader)
	write(t, c)
	t.Logf("leader killed: next write after %v", time.Since(start))
	if c.SessionID() != session {
		t.Error("the session did not survive")
	}
	if next := e.Leader(t); next == leader {
		t.Errorf("dead server %d leads", next)
	}
	e.Start(t, leader)
	e.WaitReady(t)
	t.Logf("whole again after %v", time.Since(start))
}

func TestLeaderPaused(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{})
	leader := e.Leader(t)
	var others []string
	for _, i := range e.Followers(t) {
		others = append(others, e.Server(i))
	}
	c := connect(t, others...)
	write(t, c)
	start := time.Now()
	e.Pause(t, leader)
	e.WaitMode(t, leader, "")
	write(t, c)
	t.Logf("leader paused: next write after %v", time.Since(start))
	e.Unpause(t, leader)
	e.WaitReady(t)
	t.Logf("whole again after %v", time.Since(start))
}

// A session waits if it watches another's node in the directory, whichever server it
// is connected to.
func TestWaiting(t *testing.T) {
	e := ensemble.Three(t, ensemble.Options{})
	a, b := connect(t, e.Server(0)), connect(t, e.Server(1))
	if _, err := a.Create("/dir", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Sync("/dir"); err != nil {
		t.Fatal(err)
	}
	watch := func(c *zk.Conn, path string) {
		t.Helper()
		if there, _, _, err := c.ExistsW(path); err != nil || !there {
			t.Fatal(there, err)
		}
	}
	for path, c := range map[string]*zk.Conn{"/dir/a": a, "/dir/b": b, "/dirb": b} {
		if _, err := c.Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []*zk.Conn{a, b} {
		if _, err := c.Sync("/dir"); err != nil {
			t.Fatal(err)
		}
	}
	watch(a, "/dir/a") // its own
	watch(a, "/dirb")  // elsewhere
	if n := e.Waiting(t, "/dir"); n != 0 {
		t.Errorf("%d wait, want nobody", n)
	}
	watch(b, "/dir/a")
	if n := e.Waiting(t, "/dir"); n != 1 {
		t.Errorf("%d wait, want 1", n)
	}
	watch(a, "/dir/b")
	if n := e.Waiting(t, "/dir"); n != 2 {
		t.Errorf("%d wait, want 2", n)
	}
}
