// Package redisconformance runs the conformance suite on locks of package fallback, in
// virtual time on a server in the process, or in real time on a real one. It is for
// tests only.
package redisconformance

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/internal/conformance"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// A Backend says what runs where. It implements conformance.Backend.
type Backend struct {
	// Start returns a server with nothing on it: how to connect to it. Where it is
	// virtual, it must be one that keeps time by package time and needs no network.
	Start   func(t *testing.T) (dial func() (net.Conn, error))
	Virtual bool
	// Options go with every lock.
	Options []recipes.Option
	// New makes the lock under test.
	New func(c *fallback.Client, key string, opts ...recipes.Option) (conformance.Lock, error)
	// List lists who is on the server.
	List func(ctx context.Context, c *fallback.Client, key string) ([]recipes.Contender, error)
	// Remove takes the contender with that ID off the server, as an operator would: as
	// one that died long ago, where there is a lock delay.
	Remove func(ctx context.Context, rdb redis.UniversalClient, key, id string) error
	// Visitors, if set, returns how many goroutines of the client queue in the process.
	Visitors func(c *fallback.Client, key string) int
}

// Run implements conformance.Backend.
func (b Backend) Run(t *testing.T, name string, f func(*testing.T, conformance.World)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		run := func(t *testing.T) {
			w := &world{t: t, b: b, dial: b.Start(t)}
			w.admin = Connect(w.dial)
			t.Cleanup(func() { w.admin.Close() })
			t.Cleanup(w.end)
			w.observer = w.Client().(*client)
			f(t, w)
		}
		if b.Virtual {
			synctest.Test(t, run)
			return
		}
		run(t)
	})
}

// Connect returns a client that never looks at the network by itself.
func Connect(dial func() (net.Conn, error)) *redis.Client { return ConnectTo("127.0.0.1:6379", dial) }

// ConnectTo is Connect to a server that is said to have that address.
func ConnectTo(addr string, dial func() (net.Conn, error)) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                     addr,
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return dial() },
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

type world struct {
	t        *testing.T
	b        Backend
	dial     func() (net.Conn, error)
	admin    *redis.Client
	observer *client
	clients  []*client
}

func (w *world) end() {
	w.Heal()
	for _, c := range w.clients {
		c.net.setOnStep(nil)
		if err := c.c.Close(); err != nil {
			w.t.Errorf("close: %v", err)
		}
		c.rdb.Close()
		c.net.end()
	}
	if left, ok := w.until(func() (string, bool) {
		list, err := w.admin.PubSubChannels(context.Background(), "*").Result()
		return fmt.Sprintf("channels %q, %v", list, err), len(list) == 0 && err == nil
	}); !ok {
		w.t.Errorf("left when all clients were closed: %s", left)
	}
}

// until waits for a state of the server.
func (w *world) until(state func() (string, bool)) (is string, ok bool) {
	for end := time.Now().Add(w.Patience()); ; {
		w.Settle()
		if is, ok = state(); ok || time.Now().After(end) {
			w.Settle()
			return is, ok
		}
		time.Sleep(w.step())
	}
}

func (w *world) step() time.Duration {
	if w.b.Virtual {
		return 100 * time.Millisecond
	}
	return 5 * time.Millisecond
}

// Client implements conformance.World.
func (w *world) Client() conformance.Client {
	n := newNetwork()
	rdb := Connect(func() (net.Conn, error) {
		server, err := w.dial()
		if err != nil {
			return nil, err
		}
		return n.join(server)
	})
	c, err := fallback.New(rdb, append([]recipes.Option{fallback.Realm("test")}, w.b.Options...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	made := &client{w: w, net: n, rdb: rdb, c: c, locks: map[string]bool{}}
	w.clients = append(w.clients, made)
	return made
}

// line returns who stands in line on the server, holders first.
func (w *world) line(lock string) []recipes.Contender {
	list, err := w.b.List(context.Background(), w.observer.c, lock)
	if err != nil {
		w.t.Error(err)
	}
	return list
}

// Queued implements conformance.World. Those who queue in the process count.
func (w *world) Queued(lock string, n int) (string, bool) {
	return w.until(func() (string, bool) {
		list := w.line(lock)
		visitors := 0
		for _, c := range w.clients {
			if w.b.Visitors != nil {
				visitors += w.b.Visitors(c.c, lock)
			}
		}
		return fmt.Sprintf("%+v and %d in their process", list, visitors), len(list)+visitors == n
	})
}

// Empty implements conformance.World. Tokens and tombstones go by themselves.
func (w *world) Empty(lock string) (string, bool) {
	return w.until(func() (string, bool) {
		ctx := context.Background()
		keys, err := w.admin.Keys(ctx, "*{"+lock+"}:*").Result()
		if err != nil {
			return err.Error(), false
		}
		keys = slices.DeleteFunc(keys, func(key string) bool {
			switch {
			case strings.HasSuffix(key, "-token"):
			case strings.HasSuffix(key, "-alive"):
				for _, id := range w.admin.ZRange(ctx, key, 0, -1).Val() {
					if !strings.HasPrefix(id, "x") {
						return false
					}
				}
			default:
				return false
			}
			return w.admin.PTTL(ctx, key).Val() > 0 || w.admin.Exists(ctx, key).Val() == 0
		})
		return fmt.Sprintf("%q, %+v", keys, w.line(lock)), len(keys) == 0
	})
}

// Settle implements conformance.World.
func (w *world) Settle() {
	if w.b.Virtual {
		synctest.Wait()
		return
	}
	time.Sleep(20 * time.Millisecond) // many round trips
}

// Pass implements conformance.World.
func (w *world) Pass(d time.Duration) {
	if !w.b.Virtual {
		d = min(d, 20*time.Millisecond)
	}
	time.Sleep(d)
}

// Patience implements conformance.World.
func (w *world) Patience() time.Duration {
	if w.b.Virtual {
		return 2 * time.Minute
	}
	return 20 * time.Second
}

// Short implements conformance.World.
func (w *world) Short() time.Duration {
	if w.b.Virtual {
		return 20 * time.Second
	}
	return 500 * time.Millisecond
}

// Remove implements conformance.World.
func (w *world) Remove(lock string, i int) {
	w.remove(lock, w.line(lock)[i].ID)
}

func (w *world) remove(lock, id string) {
	if err := w.b.Remove(context.Background(), w.admin, lock, id); err != nil {
		w.t.Error(err)
	}
}

// RemoveAll implements conformance.World.
func (w *world) RemoveAll(string) {
	if err := w.admin.FlushAll(context.Background()).Err(); err != nil {
		w.t.Error(err)
	}
	time.Sleep(time.Millisecond) // tokens are times, and virtual time stands still
}

// Heal implements conformance.World.
func (w *world) Heal() {
	for _, c := range w.clients {
		c.net.heal()
	}
}

type client struct {
	w     *world
	net   *network
	rdb   *redis.Client
	c     *fallback.Client
	locks map[string]bool // that it has to do with
}

// Lock implements conformance.Client.
func (c *client) Lock(name string, opts ...recipes.Option) (conformance.Lock, error) {
	c.locks[name] = true
	return c.w.b.New(c.c, name, opts...)
}

// CutOff implements conformance.Client.
func (c *client) CutOff() { c.net.cut() }

// Lose implements conformance.Client: whatever the client has on the server goes.
func (c *client) Lose() error {
	for name := range c.locks {
		list, err := c.w.b.List(context.Background(), c.c, name)
		if err != nil {
			c.w.t.Error(err)
		}
		for _, con := range list {
			if con.Mine && !strings.Contains(con.ID, "/") { // the others are not on the server
				c.w.remove(name, con.ID)
			}
		}
	}
	return recipes.ErrNodeDeleted
}

// OnStep implements conformance.Client.
func (c *client) OnStep(f func()) { c.net.setOnStep(f) }

// Close implements conformance.Client.
func (c *client) Close() error { return c.c.Close() }
