package zktest

import (
	"errors"
	"syscall"
	"testing"
	"time"
)

func TestExpire(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		c.create("/e", 1)
		w.ok(OpExists, "/e", true)
		if err := s.Expire(c.id); err != nil {
			t.Fatal(err)
		}
		w.expect("deleted /e")
		if how := c.closed(); how != "closed" {
			t.Error(how)
		}
		if err := s.Expire(c.id); !errors.Is(err, SessionExpired) {
			t.Errorf("a second time: %v", err)
		}
	})
}

func TestCut(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, other := rawSession(t, s), rawSession(t, s)
		c.create("/e", 1)
		s.Cut(c.id)
		if how := c.closed(); how != "reset" {
			t.Error(how)
		}
		other.ok(OpPing)
		if c2 := c.resume(s); c2.id != c.id || !s.Exists("/e") {
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
		s.BlackHole(c.id, ToServer)
		c.send(OpCreate, "/lost", []byte{}, openACL, 0)
		w.create("/x", 0)
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
		s.BlackHole(c.id, ToClient)
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
		if how := c.closed(); how != "open" {
			t.Errorf("the client heard that its session expired: %s", how)
		}
		s.Heal()
		c.nc.SetReadDeadline(time.Time{})
		if how := c.closed(); how != "reset" {
			t.Errorf("healed: %s", how)
		}
	})
}

func TestBlackHoleSwallowsNewConnections(t *testing.T) {
	for _, dir := range []Direction{Both, ToServer, ToClient} {
		bubble(t, func(t *testing.T, s *Server) {
			c, other := rawSession(t, s), rawSession(t, s)
			s.BlackHole(c.id, dir)
			again := rawDial(t, s)
			again.id, again.password = c.id, c.password
			again.sendHello(10_000)
			if how := again.closed(); how != "open" {
				t.Errorf("%d: %s", dir, how)
			}
			other.resume(s) // another session is not concerned
			s.BlackHole(0, dir)
			fresh := rawDial(t, s)
			fresh.sendHello(10_000)
			if how := fresh.closed(); how != "open" {
				t.Errorf("%d, all: %s", dir, how)
			}
			s.Heal()
			if how := again.closed(); how != "reset" {
				t.Errorf("%d, healed: %s", dir, how)
			}
			if back := c.resume(s); back.id != c.id {
				t.Error("the session didn't survive")
			}
		})
	}
}

func TestLoseReply(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/p", 0)
		s.LoseReply(OpCreate, 2)
		c.send(OpCreate, "/p/1", []byte{}, openACL, 0)
		c.send(OpGetData, "/p", false)
		c.send(OpCreate, "/p/2", []byte{}, openACL, 0)
		c.send(OpCreate, "/p/3", []byte{}, openACL, 0)
		for range 2 {
			if a := c.reply(); a.code != codeOK {
				t.Errorf("%v", a.code)
			}
		}
		if how := c.closed(); how != "reset" {
			t.Error(how)
		}
		if !s.Exists("/p/1") || !s.Exists("/p/2") || s.Exists("/p/3") {
			t.Errorf("applied:\n%s", s.Tree())
		}
		c = c.resume(s)
		c.create("/p/4", 0)
	})
}

func TestLoseReplyOfHandshake(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		s.LoseReply(OpConnect, 1)
		c := rawDial(t, s)
		c.sendHello(10_000)
		if how := c.closed(); how != "reset" {
			t.Error(how)
		}
		if n := len(s.Sessions()); n != 1 {
			t.Errorf("%d sessions: the server has made one that nobody knows", n)
		}
	})
}

func TestLoseRequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		s.LoseRequest(OpCreate, 1)
		c.send(OpGetData, "/", false)
		c.send(OpCreate, "/x", []byte{}, openACL, 0)
		c.reply()
		if how := c.closed(); how != "reset" {
			t.Error(how)
		}
		if s.Exists("/x") {
			t.Error("applied")
		}
		c.resume(s).create("/x", 0)
	})
}

func TestFailRequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		s.FailRequest(OpCreate, 2, int32(OperationTimeout))
		c.create("/1", 0)
		if code := c.try(OpCreate, "/2", []byte{}, openACL, 0); code != OperationTimeout || s.Exists("/2") {
			t.Errorf("%v", code)
		}
		c.create("/2", 0)
	})
}

func TestRulesCountOnTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		for n := 1; n <= 3; n++ {
			s.FailRequest(OpExists, n, int32(-10*n))
		}
		for n := 1; n <= 3; n++ {
			if code := c.try(OpExists, "/", false); code != Code(-10*n) {
				t.Errorf("%d: %v", n, code)
			}
		}
		c.ok(OpExists, "/", false)
	})
}

func TestHoldRequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, other := rawSession(t, s), rawSession(t, s)
		arrived, release := s.HoldRequest(OpCreate, 1)
		c.send(OpCreate, "/x", []byte{}, openACL, 0)
		c.send(OpCreate, "/y", []byte{}, openACL, 0)
		<-arrived
		time.Sleep(5 * time.Second)
		if other.try(OpExists, "/x", false) != NoNode || other.try(OpExists, "/y", false) != NoNode {
			t.Error("it went on")
		}
		release()
		release()
		if a, b := c.reply(), c.reply(); a.string() != "/x" || b.string() != "/y" {
			t.Error("order of answers")
		}
	})
}

func TestHeldRequestIsLostWithItsConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		arrived, release := s.HoldRequest(OpCreate, 1)
		c.send(OpCreate, "/x", []byte{}, openACL, 0)
		<-arrived
		c2 := c.resume(s)
		release()
		c2.ok(OpPing)
		time.Sleep(time.Second)
		if s.Exists("/x") {
			t.Error("carried out on a connection that had lost its session")
		}
		arrived, _ = s.HoldRequest(OpCreate, 1)
		c2.send(OpCreate, "/x", []byte{}, openACL, 0)
		<-arrived
		s.Close() // doesn't wait for the release
	})
}

func TestAnswerResumeWith(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/e", 1)
		other := c.id + 1000
		s.AnswerResumeWith(other)
		c2 := c.resume(s)
		if c2.id != other {
			t.Fatalf("answered %d", c2.id)
		}
		c2.create("/e2", 1)
		if st := c2.stat("/e2"); st.EphemeralOwner != other {
			t.Errorf("the connection belongs to %d", st.EphemeralOwner)
		}
		if !s.Exists("/e") {
			t.Error("the session that was asked for is gone")
		}
		s.AnswerResumeWith(0)
		if c3 := c.resume(s); c3.id != 0 || c3.closed() != "closed" {
			t.Errorf("answered %d", c3.id)
		}
		if c4 := c.resume(s); c4.id != c.id {
			t.Errorf("more than the next was concerned: %d", c4.id)
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
		back.id, back.password, back.zxid = c.id, c.password, c.zxid
		back.sendHello(10_000)
		if how := back.closed(); how != "closed" {
			t.Errorf("a client that has seen zxid %d: %s", c.zxid, how)
		}
		if c = rawSession(t, s); s.Zxid() != 1 {
			t.Errorf("zxid %d", s.Zxid())
		}
		time.Sleep(time.Minute) // alarms of wiped sessions mustn't ring
		if n := len(s.Sessions()); n != 0 {
			t.Errorf("%d sessions", n)
		}
	})
}
