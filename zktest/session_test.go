package zktest

import (
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

func TestSessionTimeoutIsClamped(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		for ask, want := range map[int32]int32{1: 4000, 10_000: 10_000, 1_000_000: 40_000} {
			c := rawDial(t, s)
			c.hello(ask)
			if c.Timeout != want || c.ID == 0 || len(c.Password) != 16 {
				t.Errorf("asked for %d: timeout %d, id %d, password %x", ask, c.Timeout, c.ID, c.Password)
			}
		}
	})
	bubble(t, func(t *testing.T, s *Server) {
		c := rawDial(t, s)
		if c.hello(1); c.Timeout != 7 {
			t.Errorf("timeout %d", c.Timeout)
		}
	}, SessionTimeouts(7*time.Millisecond, time.Second))
	bubble(t, func(t *testing.T, s *Server) {
		c := rawDial(t, s)
		if c.hello(1); c.Timeout != 200 {
			t.Errorf("timeout %d", c.Timeout)
		}
	}, TickTime(100*time.Millisecond))
}

func TestReadOnlyByteIsAnsweredIfAsked(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		for asked, want := range map[bool]int{false: 36, true: 37} {
			c := rawDial(t, s)
			e := jute.NewFrame()
			e.Fields(0, int64(0), 10_000, int64(0), make([]byte, 16))
			if asked {
				e.Bool(true)
			}
			c.Conn.Write(e.Sealed())
			frame, err := jute.ReadFrame(c.Conn)
			if err != nil || len(frame) != want {
				t.Errorf("asked %v: %d bytes, %v", asked, len(frame), err)
			}
		}
	})
}

func TestOpeningASessionTakesAZxid(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		if z := s.Zxid(); z != 1 {
			t.Errorf("opened: zxid %d", z)
		}
		c = c.resume(s)
		if z := s.Zxid(); z != 1 {
			t.Errorf("resumed: zxid %d", z)
		}
		if a := c.ok(OpCloseSession); a.zxid != 2 || s.Zxid() != 2 {
			t.Errorf("closed: zxid %d, %d", a.zxid, s.Zxid())
		}
	})
}

func TestSessionExpiresWhenNothingIsHeard(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		c.create("/e", 1)
		w.ok(OpExists, "/e", true)
		for range 5 { // pings keep it alive
			time.Sleep(6 * time.Second)
			c.ok(OpPing)
			w.ok(OpPing)
		}
		start := time.Now()
		time.Sleep(5 * time.Second)
		w.send(OpPing) // the watcher stays
		if err := s.WaitFor(t.Context(), func(v *View) bool { return !v.Exists("/e") }); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("expired after %v", d)
		}
		w.reply()
		w.expect("deleted /e")
		if how := c.closed(); how != "closed" {
			t.Error(how)
		}
		if c = c.resume(s); c.ID != 0 || c.Timeout != 0 {
			t.Errorf("an expired session was resumed: %d", c.ID)
		}
		if how := c.closed(); how != "closed" {
			t.Error(how)
		}
	})
}

func TestSessionSurvivesItsConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/e", 1)
		c.Conn.Close()
		time.Sleep(9 * time.Second)
		if info := s.Sessions(); len(info) != 1 || info[0].Connected || info[0].Ephemerals != 1 {
			t.Errorf("%+v", info)
		}
		again := c.resume(s)
		if again.ID != c.ID {
			t.Errorf("resumed as %d", again.ID)
		}
		time.Sleep(9 * time.Second)
		if !s.Exists("/e") || !s.Sessions()[0].Connected {
			t.Error("resuming didn't start the time anew")
		}
		time.Sleep(2 * time.Second)
		if s.Exists("/e") {
			t.Error("the session lives for ever")
		}
	})
}

func TestShorterTimeoutOnResumeCounts(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawDial(t, s)
		c.hello(40_000)
		c.Timeout = 4000
		c.resume(s)
		time.Sleep(4100 * time.Millisecond)
		if n := len(s.Sessions()); n != 0 {
			t.Errorf("%d sessions", n)
		}
	})
}

func TestResumeTakesOverFromTheOldConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c2 := c.resume(s)
		if how := c.closed(); how != "closed" {
			t.Error(how)
		}
		c2.create("/e", 1)
		if st := c2.stat("/e"); st.EphemeralOwner != c.ID {
			t.Errorf("%+v", st)
		}
	})
}

func TestWrongPassword(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		thief := rawDial(t, s)
		thief.ID = c.ID
		if thief.hello(10_000); thief.ID != 0 || thief.closed() != "closed" {
			t.Errorf("taken over as %d", thief.ID)
		}
		if how := c.closed(); how != "closed" { // so does the real one
			t.Error(how)
		}
		if c2 := c.resume(s); c2.ID != c.ID {
			t.Error("the session is gone")
		}
	})
}

func TestClosedSessionIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		c.create("/b", 1)
		c.create("/a", 1)
		c.create("/stays", 0)
		w.ok(OpGetChildren, "/", true)
		w.ok(OpExists, "/a", true)
		a := c.ok(OpCloseSession)
		if how := c.closed(); how != "closed" {
			t.Error(how)
		}
		w.expect("deleted /a", "children /")
		if st := w.stat("/"); st.Pzxid != a.zxid {
			t.Errorf("ephemerals went at %d, the session at %d", st.Pzxid, a.zxid)
		}
		if c = c.resume(s); c.ID != 0 {
			t.Error("a closed session was resumed")
		}
		if !s.Exists("/stays") || s.Exists("/a") || s.Exists("/b") {
			t.Errorf("left:\n%s", s.Tree())
		}
	})
}

func TestClientFromTheFutureGetsNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawDial(t, s)
		c.Zxid = 1
		c.sendHello(10_000)
		if how := c.closed(); how != "closed" || len(s.Sessions()) != 0 {
			t.Errorf("%s, %d sessions", how, len(s.Sessions()))
		}
	})
}

func TestGarbageEndsTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		for what, bytes := range map[string][]byte{
			"short handshake": {0, 0, 0, 3, 1, 2, 3},
			"huge frame":      {0x7f, 0, 0, 0},
			"negative length": {0xff, 0xff, 0xff, 0xff},
		} {
			c := rawDial(t, s)
			c.Conn.Write(bytes)
			if how := c.closed(); how != "closed" {
				t.Errorf("%s: %s", what, how)
			}
		}
		c := rawSession(t, s)
		c.Conn.Write([]byte{0, 0, 0, 2, 1, 2})
		if how := c.closed(); how != "closed" {
			t.Errorf("request without a header: %s", how)
		}
	})
}
