package zktest

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestExpire(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		c.create("/e", 1)
		w.ok(OpExists, "/e", true)
		if err := s.Expire(c.ID); err != nil {
			t.Fatal(err)
		}
		w.expect("deleted /e")
		if how := c.closed(); how != "closed" {
			t.Error(how)
		}
		if err := s.Expire(c.ID); !errors.Is(err, SessionExpired) {
			t.Errorf("a second time: %v", err)
		}
	})
}

func TestCut(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, other := rawSession(t, s), rawSession(t, s)
		c.create("/e", 1)
		s.Cut(c.ID)
		if how := c.closed(); how != "reset" {
			t.Error(how)
		}
		other.ok(OpPing)
		if c2 := c.resume(s); c2.ID != c.ID || !s.Exists("/e") {
			t.Error("the session went with the connection")
		}
		s.Cut(0)
		if how := other.closed(); how != "reset" {
			t.Errorf("0 is all: %s", how)
		}
	})
}

func TestRefuse(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		s.Refuse(true)
		if _, err := s.Dial(t.Context(), "tcp", "x:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v", err)
		}
		c.ok(OpPing) // what stands is left alone
		s.Refuse(false)
		c.resume(s)
		s.Refuse(true)
		s.Heal()
		c.resume(s)
	})
}

func TestBlackHoleToServer(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		c.create("/e", 1)
		c.try(OpExists, "/x", true)
		s.BlackHole(c.ID, ToServer)
		c.send(OpCreate, "/lost", []byte{}, openACL, 0)
		w.create("/x", 0)
		synctest.Wait()
		if n := s.Requests().Of(OpCreate); n != 2 {
			t.Errorf("%d requests were counted", n)
		}
		if a, err := c.next(); err != nil || a.xid != xidEvent {
			t.Errorf("events still arrive: %+v, %v", a, err)
		}
		time.Sleep(11 * time.Second)
		if s.Exists("/lost") || s.Exists("/e") {
			t.Errorf("after the time-out:\n%s", s.Tree())
		}
		if how := c.closed(); how != "closed" {
			t.Errorf("that the session expired gets through: %s", how)
		}
	})
}

func TestBlackHoleToClient(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/e", 1)
		s.BlackHole(c.ID, ToClient)
		for range 4 {
			time.Sleep(9 * time.Second)
			c.send(OpPing)
		}
		c.send(OpCreate, "/x", []byte{}, openACL, 0)
		if err := s.WaitFor(t.Context(), func(v *View) bool { return v.Exists("/x") && v.Exists("/e") }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if s.Exists("/e") {
			t.Error("the session lives for ever")
		}
		c.silent() // also about its end
		s.Heal()
		if how := c.closed(); how != "reset" {
			t.Errorf("healed: %s", how)
		}
	})
}

func TestBlackHoleSwallowsNewConnections(t *testing.T) {
	for _, dir := range []Direction{Both, ToServer, ToClient} {
		bubble(t, func(t *testing.T, s *Server) {
			c, other := rawSession(t, s), rawSession(t, s)
			s.BlackHole(c.ID, dir)
			again := rawDial(t, s)
			again.ID, again.Password = c.ID, c.Password
			again.sendHello(10_000)
			again.silent()
			other.resume(s) // another session is not concerned
			s.BlackHole(0, dir)
			fresh := rawDial(t, s)
			fresh.sendHello(10_000)
			fresh.silent()
			s.Heal()
			if how := again.closed(); how != "reset" {
				t.Errorf("%d, healed: %s", dir, how)
			}
			if back := c.resume(s); back.ID != c.ID {
				t.Error("the session didn't survive")
			}
		})
	}
}

func TestAnswerResumeWith(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/e", 1)
		other := c.ID + 1000
		s.AnswerResumeWith(other)
		c2 := c.resume(s)
		if c2.ID != other {
			t.Fatalf("answered %d", c2.ID)
		}
		c2.create("/e2", 1)
		if st := c2.stat("/e2"); st.EphemeralOwner != other {
			t.Errorf("the connection belongs to %d", st.EphemeralOwner)
		}
		if !s.Exists("/e") {
			t.Error("the session that was asked for is gone")
		}
		s.AnswerResumeWith(0)
		if c3 := c.resume(s); c3.ID != 0 || c3.closed() != "closed" {
			t.Errorf("answered %d", c3.ID)
		}
		if c4 := c.resume(s); c4.ID != c.ID {
			t.Errorf("more than the next was concerned: %d", c4.ID)
		}
	})
}

func TestDelay(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		s.Delay(100 * time.Millisecond)
		start := time.Now()
		for range 3 {
			c.send(OpPing)
		}
		for range 3 {
			c.reply()
		}
		if d := time.Since(start); d != 100*time.Millisecond {
			t.Errorf("answers came after %v", d)
		}
		c.send(OpCloseSession)
		if how := c.closed(); how != "closed" || time.Since(start) != 200*time.Millisecond {
			t.Errorf("%s after %v", how, time.Since(start))
		}
	})
}

func TestWipe(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/x", 0)
		s.Wipe()
		if how := c.closed(); how != "reset" || s.Exists("/x") || len(s.Sessions()) != 0 || s.Zxid() != 0 {
			t.Errorf("%s, %d sessions, zxid %d\n%s", how, len(s.Sessions()), s.Zxid(), s.Tree())
		}
		back := rawDial(t, s)
		back.ID, back.Password, back.Zxid = c.ID, c.Password, c.Zxid
		back.sendHello(10_000)
		if how := back.closed(); how != "closed" {
			t.Errorf("a client that has seen zxid %d: %s", c.Zxid, how)
		}
		if rawSession(t, s); s.Zxid() != 1 {
			t.Errorf("zxid %d", s.Zxid())
		}
		time.Sleep(time.Minute) // alarms of wiped sessions mustn't ring
		if n := len(s.Sessions()); n != 0 || s.Zxid() != 2 {
			t.Errorf("%d sessions, zxid %d", n, s.Zxid())
		}
	})
}
