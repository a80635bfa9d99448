package zktest

import (
	"testing"
	"time"
)

func TestLoseReply(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/p", 0)
		s.LoseReply(OpCreate, 2)
		_, release := s.HoldRequest(OpCreate, 1) // until all are under way
		c.send(OpCreate, "/p/1", []byte{}, openACL, 0)
		c.send(OpGetData, "/p", false)
		c.send(OpCreate, "/p/2", []byte{}, openACL, 0)
		c.send(OpCreate, "/p/3", []byte{}, openACL, 0)
		release()
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
		if a, b := c.reply(), c.reply(); a.Text() != "/x" || b.Text() != "/y" {
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
