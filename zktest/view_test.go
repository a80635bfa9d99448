package zktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

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
		do(s.CreateEphemeral("/a/b/e", nil, w.ID))
		if st := w.stat("/a/b/e"); st.EphemeralOwner != w.ID {
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
			"below ephemeral": errors.Join(s.CreateEphemeral("/e", nil, w.ID), s.Create("/e/x", nil)),
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
`, hex(c.ID))
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
		want := []Request{{Op: OpConnect}, {Session: c.ID, Op: OpCreate, Path: "/x", Xid: 1}}
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
			c.Conn.Close()
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
