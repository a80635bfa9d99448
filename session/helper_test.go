package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// timeout is what config asks for, and what the server grants.
const timeout = 10 * time.Second

// bubble runs a test with a server of its own in virtual time. At the end the
// server must have no session left.
func bubble(t *testing.T, f func(t *testing.T, srv *zktest.Server), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, zktest.Start(t, append([]zktest.Option{zktest.InMemory()}, opts...)...))
	})
}

func config(srv *zktest.Server) session.Config {
	return session.Config{Servers: []string{srv.Addr()}, Dial: srv.Dial, Timeout: timeout}
}

// open opens a session that lasts as long as the test.
func open(t *testing.T, cfg session.Config) (*session.Session, *session.Life) {
	t.Helper()
	s, err := session.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, life(t, s)
}

func life(t *testing.T, s *session.Session) *session.Life {
	t.Helper()
	l, err := s.Life(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// node makes a node that belongs to the life.
func node(t *testing.T, l *session.Life, prefix string) string {
	t.Helper()
	made, err := l.CreateSequential(t.Context(), prefix, []byte(prefix+time.Now().String()))
	if err != nil {
		t.Fatal(err)
	}
	return made.Path
}

// A loss is what a hold is told when it is lost.
type loss struct {
	told  chan struct{} // closed when it is
	at    time.Time
	cause error
	gone  bool
}

// hold holds a node.
func hold(t *testing.T, l *session.Life, path string) (*session.Hold, *loss) {
	t.Helper()
	lost := &loss{told: make(chan struct{})}
	h, err := l.Hold(t.Context(), path, 0, nil, func(cause error, gone bool) {
		lost.at, lost.cause, lost.gone = time.Now(), cause, gone
		close(lost.told) // a second time would panic
	})
	if err != nil {
		t.Fatal(err)
	}
	return h, lost
}

// holdNew makes a node and holds it.
func holdNew(t *testing.T, l *session.Life) (*session.Hold, *loss) {
	t.Helper()
	return hold(t, l, node(t, l, "/n-"))
}

// wait waits until the holder is told, but not for ever.
func (l *loss) wait(t *testing.T) {
	t.Helper()
	select {
	case <-l.told:
	case <-time.After(10 * timeout):
		t.Fatal("the holder is not told that the hold is lost")
	}
}

func (l *loss) yet() bool {
	select {
	case <-l.told:
		return true
	default:
		return false
	}
}

// within fails the test if f takes longer.
func within(t *testing.T, d time.Duration, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > d {
		t.Errorf("%s took %v: want at most %v", what, took, d)
	}
}

// soon is what may pass without anybody calling it a delay.
const soon = 100 * time.Millisecond

// after returns a context that ends after d.
func after(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
