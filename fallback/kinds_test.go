package fallback_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/internal/redisconformance"
	"github.com/lockkeeper/lockkeeper/recipes"
)

func virtual() redisconformance.Backend {
	return redisconformance.Backend{Start: startMini, Virtual: true}
}

func TestConformanceOfRWLock(t *testing.T)    { redisconformance.RWLock(virtual()).Run(t) }
func TestConformanceOfSemaphore(t *testing.T) { redisconformance.Semaphore(virtual()).Run(t) }
func TestConformanceOfFair(t *testing.T)      { redisconformance.Fair(virtual()).Run(t) }

// A stage is a server in virtual time, and what a test does there.
type stage struct {
	t     *testing.T
	srv   *miniredis.Miniredis
	admin *redis.Client
}

func onStage(t *testing.T, f func(t *testing.T, s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, srv: miniredis.NewMiniRedis()}
		s.srv.ClockTTL(true)
		t.Cleanup(s.srv.Close)
		s.admin = redisconformance.Connect(s.srv.Dial)
		t.Cleanup(func() { s.admin.Close() })
		t.Cleanup(s.nothingForEver)
		f(t, s)
	})
}

// nothingForEver checks that every key goes by itself.
func (s *stage) nothingForEver() {
	for _, key := range s.srv.Keys() {
		if ttl := s.admin.PTTL(context.Background(), key).Val(); ttl < 0 {
			s.t.Errorf("%s is there for ever", key)
		}
	}
}

// keyed returns the full name of a key of lock x.
func keyed(suffix string) string { return fallback.DefaultPrefix + ":{x}:" + suffix }

// A player is a client whose process can die.
type player struct {
	*fallback.Client
	w *wire
}

func (s *stage) player(opts ...recipes.Option) player {
	s.t.Helper()
	w := &wire{dial: s.srv.Dial}
	rdb := redisconformance.Connect(w.connect)
	c, err := fallback.New(rdb, append([]recipes.Option{fallback.Realm("stage")}, opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := c.Close(); err != nil && !w.isDead() {
			s.t.Error(err)
		}
		rdb.Close()
	})
	return player{c, w}
}

func (s *stage) rwlock(p player, opts ...recipes.Option) *fallback.RWLock {
	return must(fallback.NewRWLock(p.Client, "x", opts...))
}

func (s *stage) fair(p player, opts ...recipes.Option) *fallback.Fair {
	return must(fallback.NewFair(p.Client, "x", opts...))
}

func (s *stage) semaphore(p player, size int, opts ...recipes.Option) *fallback.Semaphore {
	return must(fallback.NewSemaphore(p.Client, "x", size, opts...))
}

func must[L any](l L, err error) L {
	if err != nil {
		panic(err)
	}
	return l
}

// A wire is how a player reaches the server. When the player's process has died, no
// script gets through, and no message. (The rest does: a Redis client that waits for an
// answer under a lock would stop the bubble's time.)
type wire struct {
	dial func() (net.Conn, error)

	mu      sync.Mutex
	dead    bool
	scripts int // that were run
}

func (w *wire) die()         { w.mu.Lock(); w.dead = true; w.mu.Unlock() }
func (w *wire) isDead() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.dead }
func (w *wire) count() int   { w.mu.Lock(); defer w.mu.Unlock(); return w.scripts }

func (w *wire) connect() (net.Conn, error) {
	c, err := w.dial()
	return &wired{c, w}, err
}

type wired struct {
	net.Conn
	w *wire
}

func (c *wired) Write(p []byte) (int, error) {
	c.w.mu.Lock()
	dead, n := c.w.dead, bytes.Count(p, []byte("evalsha"))
	c.w.scripts += n
	c.w.mu.Unlock()
	if dead && n > 0 {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *wired) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.w.isDead() || !bytes.Contains(p[:n], []byte("message")) {
			return n, err
		}
	}
}

type acquire = func(context.Context) (*recipes.Grant, error)

// A wait is an acquisition under way.
type wait struct {
	t      *testing.T
	g      *recipes.Grant
	err    error
	at     time.Time // when it ended
	done   chan struct{}
	cancel context.CancelFunc
}

// wait starts to acquire, and returns when it has queued, or ended.
func (s *stage) wait(acquire acquire) *wait {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	w := &wait{t: s.t, done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(w.done)
		w.g, w.err = acquire(ctx)
		w.at = time.Now()
	}()
	synctest.Wait()
	return w
}

func (w *wait) pending() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}

func (w *wait) grant() *recipes.Grant {
	w.t.Helper()
	select {
	case <-w.done:
	case <-time.After(2 * time.Minute):
		w.t.Fatal("never granted")
	}
	if w.err != nil {
		w.t.Fatal(w.err)
	}
	return w.g
}

func (s *stage) get(acquire acquire) *recipes.Grant {
	s.t.Helper()
	return s.wait(acquire).grant()
}

func (s *stage) fails(acquire acquire, want error) {
	s.t.Helper()
	if g, err := acquire(s.t.Context()); g != nil || !errors.Is(err, want) {
		s.t.Fatalf("%v, %v; want %v", g, err, want)
	}
}

func (s *stage) release(grants ...*recipes.Grant) {
	s.t.Helper()
	for _, g := range grants {
		if err := g.Release(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// stands fails the test unless every grant is held, here and on the server.
func (s *stage) stands(grants ...*recipes.Grant) {
	s.t.Helper()
	for _, g := range grants {
		if err := errors.Join(g.Err(), g.Verify(s.t.Context())); err != nil {
			s.t.Fatalf("token %v: %v", g.Token(), err)
		}
	}
}

func (s *stage) ends(g *recipes.Grant, reason error) {
	s.t.Helper()
	select {
	case <-g.Done():
	case <-time.After(2 * time.Minute):
		s.t.Fatal("does not end")
	}
	if !errors.Is(g.Err(), recipes.ErrRevoked) || !errors.Is(g.Err(), reason) {
		s.t.Fatalf("ended with %v, want %v", g.Err(), reason)
	}
}

// left fails the test if there are keys of lock x but those that go by themselves.
func (s *stage) left() {
	s.t.Helper()
	synctest.Wait()
	for _, key := range s.srv.Keys() {
		if !strings.HasSuffix(key, "-token") && !strings.HasSuffix(key, "-alive") {
			s.t.Errorf("left: %s", key)
		}
	}
}
