// Package mutex_test runs the mutex on real servers: from several processes,
// while servers are killed, paused and cut off from each other, and beside the
// locks of other libraries.
package mutex_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/worker"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
)

// TestMain is also that of the processes which tests start of themselves.
func TestMain(m *testing.M) {
	worker.Main(func(ctx context.Context, j worker.Job) (func(context.Context) (*recipes.Grant, error), func(), error) {
		s, err := session.Open(ctx, session.Config{Servers: j.Servers, Timeout: j.Timeout})
		if err != nil {
			return nil, nil, err
		}
		m, err := mutex.New(s, j.Path)
		if err != nil {
			s.Close()
			return nil, nil, err
		}
		return m.Lock, func() { s.Close() }, nil
	})
	os.Exit(m.Run())
}

// patience bounds what has to happen some time. It is there to say which wait
// never ended, and decides about nothing else.
const patience = time.Minute

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("the test has waited for too long"))
	t.Cleanup(cancel)
	return ctx
}

// lockPath returns a path for the locks of a test, and checks when the test is
// over that nothing is left below it. It has to be called before the sessions
// are opened.
func lockPath(t *testing.T, e *ensemble.Ensemble) string {
	t.Helper()
	path := "/" + strings.ReplaceAll(t.Name(), "/", "-")
	t.Cleanup(func() {
		if !t.Failed() {
			nothingLeft(t, e, path)
		}
	})
	return path
}

// nothingLeft waits until the directory is empty or gone: what belonged to a
// client that was cut off goes when its session expires.
func nothingLeft(t *testing.T, e *ensemble.Ensemble, path string) {
	c := raw(t, e.Servers()...)
	defer c.Close()
	deadline := time.Now().Add(patience)
	for {
		left, _, err := c.Children(path)
		if errors.Is(err, zk.ErrNoNode) || err == nil && len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("left behind below %s: %q, %v", path, left, err)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// raw returns a session of the raw client. The caller closes it.
func raw(t *testing.T, servers ...string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect(servers, 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// open opens a session, closed at the end of the test. What it logs is part of
// the test's output.
func open(t *testing.T, timeout time.Duration, servers ...string) *session.Session {
	t.Helper()
	s, err := session.Open(bounded(t), session.Config{
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

func newMutex(t *testing.T, s *session.Session, path string, opts ...recipes.Option) *mutex.Mutex {
	t.Helper()
	m, err := mutex.New(s, path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func lock(t *testing.T, m *mutex.Mutex) *recipes.Grant {
	t.Helper()
	g, err := m.Lock(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func release(t *testing.T, g *recipes.Grant) {
	t.Helper()
	if err := g.Release(bounded(t)); err != nil {
		t.Fatal(err)
	}
}

// later is a Lock that goes on while the test does something else.
type later struct {
	grant chan *recipes.Grant
	err   error
}

func lockLater(t *testing.T, m *mutex.Mutex) *later {
	t.Helper()
	l := &later{grant: make(chan *recipes.Grant, 1)}
	ctx := bounded(t)
	go func() {
		var g *recipes.Grant
		g, l.err = m.Lock(ctx)
		l.grant <- g
	}()
	return l
}

// get waits for the grant.
func (l *later) get(t *testing.T) *recipes.Grant {
	t.Helper()
	g := <-l.grant
	if l.err != nil {
		t.Fatal(l.err)
	}
	return g
}

// queued waits until n contenders are in line.
func queued(t *testing.T, m *mutex.Mutex, n int) {
	t.Helper()
	ctx := bounded(t)
	for {
		c, err := m.Contenders(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(c) == n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func isOpen(g *recipes.Grant) bool {
	select {
	case <-g.Done():
		return false
	default:
		return true
	}
}
