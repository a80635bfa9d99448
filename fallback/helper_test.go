package fallback

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"github.com/lockkeeper/lockkeeper/recipes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A rig is a server in the process, in virtual time, with a hook on every command, also
// on those inside scripts.
type rig struct {
	*miniredis.Miniredis
	t *testing.T

	mu     sync.Mutex
	counts map[string]int
	hook   func(p *server.Peer, cmd string, args []string) (done bool)
	log    bytes.Buffer
}

// run runs f in a bubble with a server of its own.
func run(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{Miniredis: miniredis.NewMiniRedis(), t: t, counts: map[string]int{}}
		conn, err := r.Dial() // starts it
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		r.ClockTTL(true)
		r.Server().SetPreHook(func(p *server.Peer, cmd string, args ...string) bool {
			r.mu.Lock()
			r.counts[cmd]++
			hook := r.hook
			r.mu.Unlock()
			return hook != nil && hook(p, cmd, args)
		})
		t.Cleanup(r.Close)
		f(t, r)
	})
}

// on sets the hook; nil ends it.
func (r *rig) on(hook func(p *server.Peer, cmd string, args []string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hook = hook
}

// refuse has the server answer a command with an error.
func (r *rig) refuse(command, with string) {
	r.on(func(p *server.Peer, cmd string, args []string) bool {
		if cmd == command {
			p.WriteError(with)
			return true
		}
		return false
	})
}

// since returns how many scripts, or other commands, were run by f.
func (r *rig) during(f func(), commands ...string) (n int) {
	r.t.Helper()
	count := func() (n int) {
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, cmd := range commands {
			n += r.counts[cmd]
		}
		return n
	}
	before := count()
	f()
	return count() - before
}

var scripts = []string{"EVALSHA", "EVAL"}

func (r *rig) redis() *redis.Client {
	rdb := redis.NewClient(&redis.Options{
		Addr:                     "127.0.0.1:6379",
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return r.Dial() },
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	r.t.Cleanup(func() { rdb.Close() })
	return rdb
}

func (r *rig) client(opts ...recipes.Option) *Client {
	r.t.Helper()
	log := slog.New(slog.NewTextHandler(&guarded{r: r}, nil))
	c, err := New(r.redis(), append([]recipes.Option{recipes.Logger(log)}, opts...)...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

type guarded struct{ r *rig }

func (g *guarded) Write(p []byte) (int, error) {
	g.r.mu.Lock()
	defer g.r.mu.Unlock()
	return g.r.log.Write(p)
}

// logged returns how often something was logged.
func (r *rig) logged(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.log.String(), text)
}

// mutex returns the lock x of a client of its own.
func (r *rig) mutex(opts ...recipes.Option) *Mutex {
	r.t.Helper()
	return r.of(r.client(), opts...)
}

func (r *rig) of(c *Client, opts ...recipes.Option) *Mutex {
	r.t.Helper()
	m, err := NewMutex(c, "x", opts...)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *rig) lock(m *Mutex) *recipes.Grant {
	r.t.Helper()
	g, err := m.Lock(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return g
}

func (r *rig) release(g *recipes.Grant) {
	r.t.Helper()
	if err := g.Release(r.t.Context()); err != nil {
		r.t.Error(err)
	}
}

// An attempt is a Lock under way.
type attempt struct {
	r      *rig
	cancel context.CancelFunc
	done   chan struct{}
	g      *recipes.Grant
	err    error
	at     time.Time
}

func (r *rig) start(m *Mutex) *attempt {
	ctx, cancel := context.WithCancel(r.t.Context())
	a := &attempt{r: r, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.g, a.err = m.Lock(ctx)
		a.at = time.Now()
	}()
	synctest.Wait()
	return a
}

func (a *attempt) grant() *recipes.Grant {
	a.r.t.Helper()
	select {
	case <-a.done:
	case <-time.After(time.Hour):
		a.r.t.Fatal("waits in vain")
	}
	if a.err != nil {
		a.r.t.Fatal(a.err)
	}
	return a.g
}

// left returns the keys that do not go by themselves.
func (r *rig) left() (keys []string) {
	synctest.Wait()
	for _, k := range r.Keys() {
		if !strings.HasSuffix(k, "-token") {
			keys = append(keys, k)
		}
	}
	return keys
}

func wants(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}
