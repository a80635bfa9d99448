package zktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// recorder stands in for a test that may fail.
type recorder struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(f string, a ...any) {
	r.errors = append(r.errors, fmt.Sprintf(f, a...))
}
func (r *recorder) end() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}

func TestOpenSessionFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			closed bool
			opts   []Option
			errors int
		}{
			{false, nil, 1},
			{true, nil, 0},
			{false, []Option{AllowOpenSessions()}, 0},
		} {
			r := &recorder{TB: t}
			s := Start(r, append(tc.opts, InMemory())...)
			c := rawSession(t, s)
			c.create("/e", 1)
			r.Cleanup(func() { // registered later: it runs before the check
				if tc.closed {
					c.ok(OpCloseSession)
				}
			})
			r.end()
			if len(r.errors) != tc.errors {
				t.Errorf("%+v: %q", tc, r.errors)
			}
			if _, err := s.Dial(t.Context(), "tcp", s.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("dial after the end: %v", err)
			}
		}
	})
}

func TestOptionsThatDontFit(t *testing.T) {
	for what, opts := range map[string][]Option{
		"two ways to listen": {InMemory(), Listen("127.0.0.1:0")},
		"no tick":            {TickTime(-1)},
		"max below min":      {SessionTimeouts(time.Minute, time.Second)},
		"no address":         {Listen("127.0.0.1:none")},
	} {
		if s, err := New(opts...); err == nil {
			t.Error(what)
			s.Close()
		}
	}
}

func TestServersDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Start(t, InMemory(), AllowOpenSessions()), Start(t, InMemory(), AllowOpenSessions())
		if a.Addr() == b.Addr() {
			t.Error("same address")
		}
		c := rawSession(t, a)
		if c.resume(b).ID != 0 {
			t.Error("one server knows the other's session")
		}
	})
}

func TestCloseIsACrash(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/e", 1)
		s.Close()
		s.Close()
		if how := c.closed(); how != "closed" {
			t.Error(how)
		}
		if err := s.WaitFor(t.Context(), func(v *View) bool { return !v.Exists("/e") }); err != ErrClosed {
			t.Errorf("%v", err)
		}
	})
}

func TestOverTCP(t *testing.T) {
	s := Start(t, AllowOpenSessions(), Logger(slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	nc, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	c := rawOver(t, nc)
	c.hello(10_000)
	c.create("/x", 1)
	s.Cut(c.ID)
	if how := c.closed(); how != "reset" {
		t.Error(how)
	}
	c = c.resume(s)
	s.LoseReply(OpCreate, 1)
	c.send(OpExists, "/", false)
	c.send(OpCreate, "/y", []byte{}, openACL, 0)
	if a := c.reply(); a.code != codeOK {
		t.Error(a.code)
	}
	if how := c.closed(); how != "reset" || !s.Exists("/y") {
		t.Error(how)
	}
	s.Refuse(true)
	if nc, err := net.Dial("tcp", s.Addr()); err == nil {
		if how := rawOver(t, nc).closed(); how != "reset" {
			t.Errorf("refused: %s", how)
		}
	}
	s.Refuse(false)
	c = c.resume(s)
	c.ok(OpCloseSession)
	if how := c.closed(); how != "closed" {
		t.Error(how)
	}
}

func TestDialHonoursItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Dial(ctx, "tcp", s.Addr()); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestManyClientsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		if err := s.Create("/p", nil); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		const clients, each = 20, 20
		for range clients {
			go func() {
				defer func() { done <- struct{}{} }()
				c := rawSession(t, s)
				for range each {
					c.ok(OpGetChildren, "/p", true)
					c.create("/p/n-", 3)
				}
			}()
		}
		for range clients {
			<-done
		}
		if st, _ := s.Stat("/p"); st.NumChildren != clients*each || st.Cversion != clients*each {
			t.Errorf("%+v", st)
		}
		checkTree(t, s.snapshot())
	})
}
