package redistest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/integration/redistest"
)

// bounded bounds what has to happen some time.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the test has waited for too long"))
	t.Cleanup(cancel)
	return ctx
}

// soon is when a command that must not be answered is given up.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// connect returns a client that sends each command once and heeds deadlines.
func connect(t *testing.T, o redis.Options) *redis.Client {
	t.Helper()
	o.MaxRetries, o.ContextTimeoutEnabled = -1, true
	c := redis.NewClient(&o)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestServerComesBackEmpty(t *testing.T) {
	testComesBackEmpty(t)
}

// Where the servers of the other tests run in containers, this one does not.
func TestProcessComesBackEmpty(t *testing.T) {
	t.Setenv(redistest.ServerEnv, program(t))
	testComesBackEmpty(t)
}

// program finds a redis-server. Debian has it under another of its names where
// only the tools are installed.
func program(t *testing.T) string {
	t.Helper()
	if p, err := exec.LookPath("redis-server"); err == nil {
		return p
	}
	p, err := exec.LookPath("redis-check-rdb")
	if err != nil {
		t.Skip("no redis-server program is installed here")
	}
	link := filepath.Join(t.TempDir(), "redis-server")
	if err := os.Symlink(p, link); err != nil {
		t.Fatal(err)
	}
	return link
}

func testComesBackEmpty(t *testing.T) {
	s := redistest.Start(t)
	s.Do(t, "SET", "k", "v")
	addr := s.Addr()
	s.Kill(t)
	s.Kill(t) // does no harm
	if err := s.Client().Ping(bounded(t)).Err(); err == nil {
		t.Fatal("a dead server answers")
	}
	s.Start(t)
	if keys := s.Keys(t); len(keys) != 0 || s.Addr() != addr {
		t.Errorf("%q at %s, which was %s", keys, s.Addr(), addr)
	}

	s.Pause(t)
	if err := s.Client().Ping(soon(t)).Err(); err == nil {
		t.Fatal("a paused server answers")
	}
	s.Unpause(t)
	s.Do(t, "SET", "k", "v")
	s.Pause(t)
	s.Kill(t) // also while paused
}

func TestFaultsOfAServer(t *testing.T) {
	s := redistest.Start(t)
	c := connect(t, redis.Options{Addr: s.Addr()})
	script := redis.NewScript("return 1")

	t.Run("PauseWrites", func(t *testing.T) {
		s.PauseWrites(t, time.Minute)
		if err := c.Set(soon(t), "k", "v", 0).Err(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %v", err)
		}
		if err := c.Get(bounded(t), "k").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("read: %v", err)
		}
		s.ResumeWrites(t)
		if err := c.Set(bounded(t), "k", "v", 0).Err(); err != nil {
			t.Error(err)
		}
	})
	t.Run("StopExpiring", func(t *testing.T) {
		s.StopExpiring(t)
		s.Do(t, "FLUSHALL")
		s.Do(t, "SET", "k", "v", "PX", 1)
		s.Do(t, "SET", "later", "v", "PX", 2)
		for s.Do(t, "EXISTS", "later") == int64(1) {
		}
		if n := s.Do(t, "DBSIZE"); n != int64(1) {
			t.Errorf("%v keys, one should have stayed", n)
		}
		if n := s.Do(t, "EXISTS", "k"); n != int64(0) {
			t.Error("a key is there after its time")
		}
		s.ResumeExpiring(t)
	})
	t.Run("KillSubscribers", func(t *testing.T) {
		sub := c.Subscribe(bounded(t), "there")
		defer sub.Close()
		if _, err := sub.Receive(bounded(t)); err != nil {
			t.Fatal(err)
		}
		if n := s.Subscribers(t); n != 1 || !slices.Equal(s.Channels(t), []string{"there"}) {
			t.Errorf("%d subscribers to %q", n, s.Channels(t))
		}
		if n := s.KillSubscribers(t); n != 1 {
			t.Errorf("killed %d", n)
		}
		if _, err := sub.Receive(bounded(t)); err == nil {
			t.Error("the subscription lives")
		}
	})
	t.Run("FlushScripts", func(t *testing.T) {
		if err := script.Load(bounded(t), c).Err(); err != nil {
			t.Fatal(err)
		}
		s.FlushScripts(t)
		if err := script.EvalSha(bounded(t), c, nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
			t.Errorf("%v", err)
		}
	})
	t.Run("Fill", func(t *testing.T) {
		s.Fill(t)
		if err := c.Set(bounded(t), "k", "v", 0).Err(); !redis.HasErrorPrefix(err, "OOM") {
			t.Errorf("write: %v", err)
		}
		if err := c.Del(bounded(t), "k").Err(); err != nil {
			t.Errorf("delete: %v", err)
		}
		s.Empty(t)
		if err := c.Set(bounded(t), "k", "v", 0).Err(); err != nil {
			t.Error(err)
		}
	})
	t.Run("AddUser", func(t *testing.T) {
		u := connect(t, redis.Options{Addr: s.Addr(), Username: "u", Password: s.AddUser(t, "u", "~*", "+@all")})
		if err := u.Set(bounded(t), "k", "v", 0).Err(); err != nil {
			t.Error(err)
		}
		if err := u.Publish(bounded(t), "there", "x").Err(); !redis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("publish: %v", err)
		}
	})
	t.Run("Counts", func(t *testing.T) {
		before := s.Counts(t)
		for range 3 {
			if err := c.Eval(bounded(t), "redis.call('get', 'k') return redis.call('get', 'k')", nil).Err(); err != nil {
				t.Fatal(err)
			}
		}
		d := s.Counts(t).Since(before)
		if d.Of("eval") != 3 || d.Of("get") != 6 || d.Of("eval", "get") != 9 || d.Of("set") != 0 {
			t.Errorf("%v", d)
		}
	})
}

func TestSeveralAreIndependent(t *testing.T) {
	for i, s := range redistest.StartSeveral(t, 5) {
		s.Do(t, "SET", "mine", i)
		if n := s.Do(t, "DBSIZE"); n != int64(1) {
			t.Errorf("server %d has %v keys", i, n)
		}
	}
}

func TestFailoverLosesWhatTheReplicaDidNotGet(t *testing.T) {
	p := redistest.StartPair(t)
	c := connect(t, redis.Options{Addr: p.Addr()})
	set := func(key string) {
		t.Helper()
		if err := c.Set(bounded(t), key, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("kept")
	p.WaitReplicated(t)
	p.Link.Hole()
	set("lost")
	p.Failover(t)
	keys, err := c.Keys(bounded(t), "*").Result()
	for err != nil { // the connections of before were broken
		keys, err = c.Keys(bounded(t), "*").Result()
	}
	if !slices.Equal(keys, []string{"kept"}) {
		t.Errorf("after the failover: %q", keys)
	}
	set("new")
}

func TestSentinelsFailover(t *testing.T) {
	s := redistest.StartSentinels(t)
	if s.Master(t) != s.Servers[0] {
		t.Fatal("the first is not the master")
	}
	c := redis.NewFailoverClient(s.Options())
	t.Cleanup(func() { c.Close() })
	if err := c.Set(bounded(t), "kept", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(bounded(t), 1, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	s.CutReplica(t)
	if err := c.Set(bounded(t), "lost", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	s.Failover(t)
	t.Logf("failover took %v", time.Since(start))
	keys, err := c.Keys(bounded(t), "*").Result()
	for err != nil && bounded(t).Err() == nil {
		keys, err = c.Keys(bounded(t), "*").Result()
	}
	if !slices.Equal(keys, []string{"kept"}) {
		t.Errorf("after the failover: %q, %v", keys, err)
	}
}

func TestClusterMovesASlot(t *testing.T) {
	c := redistest.StartCluster(t)
	client := redis.NewClusterClient(c.Options())
	t.Cleanup(func() { client.Close() })
	for _, key := range strings.Fields("a b c d e f g h") {
		if err := client.Set(bounded(t), key, key, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	slot := c.Slot(t, "a")
	src := c.Owner(t, slot)
	dst := (src + 1) % len(c.Servers)
	c.MoveSlot(t, slot, dst)
	if at := c.Owner(t, slot); at != dst {
		t.Errorf("slot %d is at server %d", slot, at)
	}
	if slices.Contains(c.Servers[src].Keys(t), "a") || !slices.Contains(c.Servers[dst].Keys(t), "a") {
		t.Error("the key was left where it was")
	}
	if v, err := client.Get(bounded(t), "a").Result(); v != "a" {
		t.Errorf("%q, %v", v, err)
	}
}
