//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lockkeeper/lockkeeper/fallback"
)

const redisPassword = "s3cret"

// newRedis returns a server in the process, whose keys end by the clock.
func newRedis() (*miniredis.Miniredis, error) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	m.RequireAuth(redisPassword)
	return m, m.Start()
}

// leftOnRedis returns the keys of those in line. That from which tokens come stays for
// a while.
func leftOnRedis(m *miniredis.Miniredis) (keys []string) {
	for _, k := range m.Keys() {
		if !strings.HasSuffix(k, "-token") {
			keys = append(keys, k)
		}
	}
	return keys
}

type redisKey struct{}

// redis starts a server, whose URL is in REDIS, and address in REDISADDR.
func scriptRedis(ts *testscript.TestScript, neg bool, args []string) {
	m, err := newRedis()
	ts.Check(err)
	ts.Defer(m.Close)
	*ts.Value(redisKey{}).(**miniredis.Miniredis) = m
	ts.Setenv("REDIS", "redis://:"+redisPassword+"@"+m.Addr())
	ts.Setenv("REDISADDR", m.Addr())
}

func redisOf(ts *testscript.TestScript) *miniredis.Miniredis {
	return *ts.Value(redisKey{}).(**miniredis.Miniredis)
}

// redis-held KEY N waits until N contenders are in the line of a mutex.
func scriptRedisHeld(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	l, done, err := mutexOnRedis(redisOf(ts), args[0])
	ts.Check(err)
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		line, err := l.Contenders(ctx)
		ts.Check(err)
		if len(line) == want {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// redis-line KEY N checks that there are N at this moment: one that has gone without
// saying so would be there for a while.
func scriptRedisLine(ts *testscript.TestScript, neg bool, args []string) {
	l, done, err := mutexOnRedis(redisOf(ts), args[0])
	ts.Check(err)
	defer done()
	line, err := l.Contenders(context.Background())
	ts.Check(err)
	if want, err := strconv.Atoi(args[1]); err != nil || len(line) != want {
		ts.Fatalf("%d in line, want %s: %+v", len(line), args[1], line)
	}
}

// redis-silent checks that nobody has connected to it.
func scriptRedisSilent(ts *testscript.TestScript, neg bool, args []string) {
	if n := redisOf(ts).TotalConnectionCount(); n > 0 {
		ts.Fatalf("the server has had %d connections", n)
	}
}

// redis-clean checks that it was used, and nobody is in line any more.
func scriptRedisClean(ts *testscript.TestScript, neg bool, args []string) {
	m := redisOf(ts)
	if m.TotalConnectionCount() == 0 {
		ts.Fatalf("it was never used")
	}
	if left := leftOnRedis(m); len(left) > 0 {
		ts.Fatalf("left: %q", left)
	}
}

// A gate passes connections on to a server until it is shut: then it swallows what
// comes, from both sides.
type gate struct {
	net.Listener
	mu   sync.Mutex
	shut bool
}

func newGate(t *testing.T, target string) *gate {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{Listener: l}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				near.Close()
				continue
			}
			go g.pass(near, far)
			go g.pass(far, near)
		}
	}()
	return g
}

func (g *gate) pass(from, to net.Conn) {
	defer to.Close()
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		g.mu.Lock()
		shut := g.shut
		if !shut {
			to.Write(buf[:n])
		}
		g.mu.Unlock()
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

// startRedis is start for a lock on Redis, behind a gate.
func startRedis(t *testing.T, script string, flags ...string) (*running, *miniredis.Miniredis, *gate) {
	t.Helper()
	m, err := newRedis()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	g := newGate(t, m.Addr())
	where := []string{"-redis", "redis://:" + redisPassword + "@" + g.Addr().String()}
	return launch(t, where, newBeats(t), ":", "run", script, flags...), m, g
}

// mutexOnRedis is the lock as another host has it.
func mutexOnRedis(m *miniredis.Miniredis, key string) (l *fallback.Mutex, done func(), err error) {
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), Password: redisPassword})
	c, err := fallback.New(rdb)
	if err != nil {
		return nil, nil, err
	}
	l, err = fallback.NewMutex(c, key)
	return l, func() { c.Close(); rdb.Close() }, err
}

// nextOnRedis locks as another host would.
func nextOnRedis(t *testing.T, m *miniredis.Miniredis) {
	t.Helper()
	l, done, err := mutexOnRedis(m, lockPath)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	if _, err := l.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Cut off from Redis, which tells nobody: the group is told, and is dead before another
// gets the lock.
func TestRunRedisCutOff(t *testing.T) {
	t.Parallel()
	r, m, g := startRedis(t, stubborn, "-timeout", "4s")
	r.expect("ready")
	for _, key := range leftOnRedis(m) {
		if ttl := m.TTL(key); ttl <= 0 || ttl > 4*time.Second {
			t.Errorf("%s has a time to live of %v, want what -timeout asked for", key, ttl)
		}
	}
	g.close()
	nextOnRedis(t, m)
	r.mark("next")
	r.wantDeadBefore("next")
	r.expect("told")
	r.wantCode(exitLost)
}

// Held for longer than its time to live, the lock stays: it is renewed.
func TestRunRedisOutlivesItsTimeout(t *testing.T) {
	t.Parallel()
	r, m, _ := startRedis(t, `trap "exit 7" USR1; echo ready; read x <`+block(t), "-timeout", "1s")
	r.expect("ready")
	// The holder's key goes on to be there while two other keys with the same time to
	// live, one after the other, come and go.
	for range 2 {
		m.Set("hourglass", "")
		m.SetTTL("hourglass", time.Second)
		for m.Exists("hourglass") {
			time.Sleep(5 * time.Millisecond)
		}
		if len(leftOnRedis(m)) == 0 {
			t.Fatal("the lock is gone")
		}
	}
	r.cmd.Process.Signal(syscall.SIGUSR1)
	r.wantCode(7)
	if left := leftOnRedis(m); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// Somebody deletes the key: there is no grace, and the group is dead when we have ended.
func TestRunRedisKeyDeleted(t *testing.T) {
	t.Parallel()
	r, m, _ := startRedis(t, stubborn, "-timeout", "3s")
	r.expect("ready")
	m.FlushAll()
	r.wantCode(exitLost)
	r.mark("ended")
	r.wantDeadBefore("ended")
	if rest, _ := io.ReadAll(r.out); len(rest) > 0 {
		t.Errorf("output %q, want none", rest)
	}
	if !strings.Contains(r.err.String(), "removed on the server") {
		t.Errorf("stderr %q does not give the reason", r.err.String())
	}
}

// A signal ends the attempt to connect to a server that says nothing.
func TestRunRedisSignalWhileConnecting(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	where := []string{"-redis", "redis://" + l.Addr().String(), "-connect-timeout", "0"}
	r := launch(t, where, newBeats(t), ":", "run", "echo never")
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r.cmd.Process.Signal(syscall.SIGTERM)
	r.wantCode(exitSignal + int(syscall.SIGTERM))
	if !strings.Contains(r.err.String(), "ended by signal") {
		t.Errorf("stderr %q", r.err.String())
	}
}
