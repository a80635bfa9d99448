package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// quiet is a logger for go-zookeeper.
type quiet struct{ t testing.TB }

func (quiet) Printf(string, ...any) {}

// connect returns a client that has a session, and closes it with the test.
func connect(t testing.TB, s *zktest.Server, timeout time.Duration) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{s.Addr()}, timeout,
		zk.WithDialer(s.DialTimeout), zk.WithLogger(quiet{t}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for ev := range events {
		if ev.State == zk.StateHasSession {
			return c
		}
	}
	t.Fatal("no session")
	return nil
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var open = zk.WorldACL(zk.PermAll)

func TestClientOverTCP(t *testing.T) {
	basics(t, zktest.Start(t))
}

func TestClientInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		basics(t, zktest.Start(t, zktest.InMemory()))
	})
}

// basics is a walk through what most programs do.
func basics(t *testing.T, s *zktest.Server) {
	c := connect(t, s, 10*time.Second)
	path := must(c.Create("/a", []byte("x"), 0, open))(t)
	if path != "/a" {
		t.Errorf("created %q", path)
	}
	if _, err := c.Create("/a", nil, 0, open); err != zk.ErrNodeExists {
		t.Errorf("second create: %v", err)
	}
	seq := must(c.Create("/a/n-", nil, zk.FlagEphemeral|zk.FlagSequence, open))(t)
	if seq != "/a/n-0000000000" {
		t.Errorf("created %q", seq)
	}
	data, stat, err := c.Get("/a")
	if err != nil || string(data) != "x" || stat.NumChildren != 1 {
		t.Errorf("get: %q %+v %v", data, stat, err)
	}
	names, _, _, err := c.ChildrenW("/a")
	if err != nil || len(names) != 1 {
		t.Errorf("children: %v %v", names, err)
	}
	if _, err := c.Set("/a", []byte("y"), 7); err != zk.ErrBadVersion {
		t.Errorf("set: %v", err)
	}
	if err := c.Delete("/a", -1); err != zk.ErrNotEmpty {
		t.Errorf("delete: %v", err)
	}
	_, _, gone, err := c.GetW(seq)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Multi(&zk.SetDataRequest{Path: "/a", Data: []byte("z"), Version: 0}, &zk.DeleteRequest{Path: seq, Version: -1}); err != nil {
		t.Fatal(err)
	}
	if ev := <-gone; ev.Type != zk.EventNodeDeleted || ev.Path != seq {
		t.Errorf("event: %+v", ev)
	}
	if _, err := c.Sync("/a"); err != nil {
		t.Fatal(err)
	}
	must(c.CreateContainer("/c", nil, 4, open))(t)
	must(c.CreateTTL("/ttl", nil, 5, open, time.Minute))(t)
	if err := c.Delete("/a", 1); err != nil {
		t.Fatal(err)
	}

}
