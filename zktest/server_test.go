package zktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
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
		if c.resume(b).id != 0 {
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
	s.Cut(c.id)
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

func TestFourLetterWords(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		for word, want := range map[string]string{
			"ruok": "imok", "isro": "rw", "srvr": "Mode: standalone\n", "envi": "zookeeper.version=3.8.0",
		} {
			nc, err := s.Dial(t.Context(), "tcp", "")
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(nc, word)
			answer, err := io.ReadAll(nc)
			if err != nil || !strings.Contains(string(answer), want) {
				t.Errorf("%s: %q %v", word, answer, err)
			}
			nc.Close()
		}
	})
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

func TestForeignEdits(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		w := rawSession(t, s)
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		do(s.Create("/a/b/c", []byte("x")))
		do(s.CreateEphemeral("/a/b/e", nil, w.id))
		if st := w.stat("/a/b/e"); st.EphemeralOwner != w.id {
			t.Errorf("%+v", st)
		}
		w.ok(OpGetData, "/a/b/c", true)
		w.ok(OpExists, "/a/b", true)
		do(s.Set("/a/b/c", []byte("y")))
		w.expect("changed /a/b/c")
		if data, ok := s.Data("/a/b/c"); string(data) != "y" || !ok {
			t.Errorf("%q", data)
		}
		if st, ok := s.Stat("/a/b/c"); st.Version != 1 || !ok {
			t.Errorf("%+v", st)
		}
		do(s.Delete("/a/b/c"))
		do(s.DeleteAll("/a"))
		w.expect("deleted /a/b")
		for what, err := range map[string]error{
			"create twice":    errors.Join(s.Create("/x", nil), s.Create("/x", nil)),
			"below ephemeral": errors.Join(s.CreateEphemeral("/e", nil, w.id), s.Create("/e/x", nil)),
			"bad path":        s.Create("a", nil),
			"no session":      s.CreateEphemeral("/y", nil, 5),
			"delete nothing":  s.Delete("/none"),
			"delete the root": s.DeleteAll("/"),
			"set nothing":     s.Set("/none", nil),
		} {
			var code Code
			if !errors.As(err, &code) {
				t.Errorf("%s: %v", what, err)
			}
		}
		checkTree(t, s.snapshot())
	})
}

func TestTreeIsReadable(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/e", 1)
		c.ok(OpCreateContainer, "/c", []byte{}, openACL, 4)
		c.ok(OpCreateTTL, "/t", []byte("x"), openACL, 5, int64(1500))
		want := fmt.Sprintf(`/ "" v0
/c "" v0 container
/e "" v0 ephemeral %s
/t "x" v0 ttl 1.5s
/zookeeper "" v0
/zookeeper/config "" v0
/zookeeper/quota "" v0
`, hex(c.id))
		if got := s.Tree(); got != want {
			t.Errorf("\n%s", got)
		}
	})
}

func TestCounts(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.ok(OpPing)
		c.ok(OpExists, "/", true)
		c.try(OpCreate, "/x", []byte{}, openACL, 0)
		c.ok(OpGetChildren, "/", true)
		c.ok(OpDelete, "/x", -1)
		n := s.Requests()
		if n.Of(OpConnect) != 1 || n.Of(OpPing) != 1 || n.Of(OpCreate) != 1 || n.Total() != 5 || n.Events != 1 {
			t.Errorf("%+v", n)
		}
		s.ResetCounts()
		c.ok(OpPing)
		if n := s.Requests(); n.Total() != 0 || n.BytesIn != 12 || n.BytesOut != 20 {
			t.Errorf("a ping: %+v", n)
		}
	})
}

func TestOnRequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		var seen []Request
		s.OnRequest(func(r Request) {
			seen = append(seen, r)
			if r.Op == OpCreate {
				s.Set("/", []byte("before"))
			}
		})
		c := rawSession(t, s)
		c.create("/x", 0)
		s.OnRequest(nil)
		c.ok(OpPing)
		want := []Request{{Op: OpConnect}, {Session: c.id, Op: OpCreate, Path: "/x", Xid: 1}}
		if !slices.Equal(seen, want) {
			t.Errorf("%+v", seen)
		}
		if st := c.stat("/"); st.Mzxid >= c.stat("/x").Czxid {
			t.Error("the request was carried out first")
		}
	})
}

func TestWaitFor(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		go func() {
			c := rawSession(t, s)
			time.Sleep(time.Second)
			c.create("/x", 1)
			c.ok(OpExists, "/x", true)
			time.Sleep(time.Second)
			c.nc.Close()
		}()
		start := time.Now()
		for _, cond := range []func(*View) bool{
			func(v *View) bool { return v.Requests().Of(OpCreate) == 1 },
			func(v *View) bool { st, ok := v.Stat("/x"); return ok && st.EphemeralOwner != 0 },
			func(v *View) bool { return v.Watches() == 1 && v.Sessions()[0].Watches == 1 },
			func(v *View) bool { return !v.Sessions()[0].Connected },
			func(v *View) bool {
				_, there := v.Data("/x")
				return len(v.Children("/")) == 1 && v.Zxid() == 3 && !there
			},
		} {
			if err := s.WaitFor(t.Context(), cond); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d != 11*time.Second {
			t.Errorf("after %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.WaitFor(ctx, func(*View) bool { return false }); err != context.DeadlineExceeded {
			t.Errorf("%v", err)
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
