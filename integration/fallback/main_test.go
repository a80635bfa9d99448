// Tests of package fallback on real Redis servers: lost answers, failing servers,
// failovers, stopped and killed processes, full servers, thousands of locks. The
// numbers R01 to R64 are rows of the list of what went wrong with Redis locks
// elsewhere, each of which is a test here or in the package itself.
package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/integration/worker"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// TestMain is also that of the processes which tests start of themselves.
func TestMain(m *testing.M) {
	if text := os.Getenv(holderEnv); text != "" {
		os.Exit(hold(text))
	}
	worker.Main(openWorker)
	os.Exit(redistest.Main(m))
}

// soon bounds what has to happen because somebody is told of it. It is much less
// than a third of [byTimer], after which a waiter would find out by itself.
const soon = 10 * time.Second

// byTimer has waiters look for themselves so seldom that a test which waits for
// [soon] sees only those who were told.
func byTimer() recipes.Option { return fallback.WaiterTimeout(time.Minute) }

// key is the lock of a test.
func key(t *testing.T) string { return t.Name() }

// dial returns a Redis client with the default options of go-redis, which among
// other things sends a command again whose answer got lost.
func dial(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// open opens a client, closed at the end of the test. What it logs is part of the
// test's output.
func open(t *testing.T, rdb redis.UniversalClient, opts ...recipes.Option) *fallback.Client {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	c, err := fallback.New(rdb, append([]recipes.Option{recipes.Logger(logger)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// dialAs is dial for a user.
func dialAs(t *testing.T, addr, user, password string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, Username: user, Password: password})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// recorder keeps the warnings that are logged.
type recorder chan string

func (r recorder) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// Write implements io.Writer; one call is one record.
func (r recorder) Write(p []byte) (int, error) {
	select {
	case r <- string(p):
	default:
	}
	return len(p), nil
}

func newMutex(t *testing.T, c *fallback.Client, key string, opts ...recipes.Option) *fallback.Mutex {
	t.Helper()
	m, err := fallback.NewMutex(c, key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// client opens a client of the server and returns the test's lock on it.
func client(t *testing.T, addr string, opts ...recipes.Option) *fallback.Mutex {
	t.Helper()
	return newMutex(t, open(t, dial(t, addr)), key(t), opts...)
}

// ended waits for the end of a grant, which must be for that reason.
func ended(t *testing.T, g *recipes.Grant, reason error) {
	t.Helper()
	select {
	case <-g.Done():
	case <-time.After(await.Patience):
		t.Fatalf("token %v does not end", g.Token())
	}
	if err := g.Err(); !errors.Is(err, reason) || !errors.Is(reason, recipes.ErrReleased) && !errors.Is(err, recipes.ErrRevoked) {
		t.Fatalf("token %v ended with %v, want %v", g.Token(), err, reason)
	}
}

// stands checks that a grant is held, by our own clock and by the server's word.
func stands(t *testing.T, g *recipes.Grant) {
	t.Helper()
	if err := g.Verify(await.Context(t)); err != nil {
		t.Fatalf("token %v: %v", g.Token(), err)
	}
}

// rises checks the order of tokens.
func rises(t *testing.T, grants ...*recipes.Grant) {
	t.Helper()
	for i := 1; i < len(grants); i++ {
		if a, b := grants[i-1].Token(), grants[i].Token(); b <= a {
			t.Errorf("token %v came after %v", b, a)
		}
	}
}

// nothingLeft waits until nothing is on the servers that stands for a holder or a
// waiter, and checks that what remains goes by itself: the last token, and the ids
// of those who gave up before their request had come.
func nothingLeft(t *testing.T, servers ...*redistest.Server) {
	t.Helper()
	var left []string
	await.Until(t, "nothing to be left", func() bool {
		left = nil
		for _, s := range servers {
			left = append(left, standing(t, s)...)
		}
		if len(left) > 0 && t.Failed() {
			t.Fatalf("left: %q", left)
		}
		return len(left) == 0
	})
}

// standing returns what is on a server that must not be left.
func standing(t *testing.T, s *redistest.Server) (left []string) {
	t.Helper()
	for _, k := range s.Keys(t) {
		ttl, _ := s.Do(t, "PTTL", k).(int64)
		switch _, part, _ := strings.Cut(k, "}:"); {
		case ttl == -1:
			left = append(left, k+", for ever")
		case ttl < 0: // it has just gone
		case strings.HasSuffix(part, "-token"):
		case strings.HasSuffix(part, "-alive"):
			for _, id := range s.Do(t, "ZRANGE", k, 0, -1).([]any) {
				if id := fmt.Sprint(id); !strings.HasPrefix(id, "x") {
					left = append(left, k+" "+id)
				}
			}
		default:
			left = append(left, k)
		}
	}
	slices.Sort(left)
	return left
}

// noneLeft is to be called before clients are opened: it checks after they are
// closed that none of their goroutines and subscriptions is left, nor any key.
func noneLeft(t *testing.T, servers ...*redistest.Server) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		nothingLeft(t, servers...)
		for _, s := range servers {
			await.Until(t, "subscriptions to end", func() bool { return s.Subscribers(t) == 0 && len(s.Channels(t)) == 0 })
		}
		await.Until(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
	})
}

func openWorker(_ context.Context, j worker.Job) (func(context.Context) (*recipes.Grant, error), func(), error) {
	rdb := redis.NewClient(&redis.Options{Addr: j.Servers[0]})
	c, err := fallback.New(rdb)
	if err != nil {
		return nil, nil, err
	}
	m, err := fallback.NewMutex(c, j.Path, fallback.TTL(j.Timeout))
	return m.Lock, func() { c.Close(); rdb.Close() }, err
}

func isToken(key string) bool { return strings.HasSuffix(key, "-token") }
