package zktest

import (
	"testing"
	"time"
)

func TestStaleReads(t *testing.T) {
	for name, catchUp := range map[string]func(*testing.T, *Server, *rawClient){
		"until a sync":       func(_ *testing.T, _ *Server, c *rawClient) { c.ok(OpSync, "/p") },
		"until a write":      func(_ *testing.T, _ *Server, c *rawClient) { c.try(OpDelete, "/none", -1) },
		"until switched off": func(_ *testing.T, s *Server, c *rawClient) { s.StaleReads(c.ID, false) },
		"on a new connection, too": func(t *testing.T, s *Server, c *rawClient) {
			c2 := c.resume(s)
			if c2.stat("/p").NumChildren != 1 {
				t.Error("a new connection sees the truth")
			}
			c2.ok(OpSync, "/")
			if c2.stat("/p").NumChildren != 0 {
				t.Error("a sync on the new connection changed nothing")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *Server) {
				c, other := rawSession(t, s), rawSession(t, s)
				c.create("/p", 0)
				c.create("/p/gone", 0)
				c.ok(OpGetChildren, "/p", true)
				s.StaleReads(c.ID, true)
				zxid := s.Zxid()
				other.ok(OpDelete, "/p/gone", -1)
				other.ok(OpSetData, "/p", []byte("new"), -1)
				if other.stat("/p").NumChildren != 0 {
					t.Error("another session lags, too")
				}
				a := c.ok(OpGetData, "/p/gone", true) // still there, for this one
				if a.zxid != zxid {
					t.Errorf("answered at zxid %d, the follower is at %d", a.zxid, zxid)
				}
				if c.ok(OpGetData, "/p", true).Bytes(); c.stat("/p").Version != 0 {
					t.Error("saw the new data")
				}
				c.expect()

				catchUp(t, s, c)
				if name == "on a new connection, too" {
					return
				}
				c.expect("deleted /p/gone", "children /p", "changed /p")
				if c.try(OpExists, "/p/gone", false) != NoNode || c.stat("/p").Version != 1 {
					t.Error("still stale")
				}
			})
		})
	}
}

func TestStaleFollowerSeesItsOwnWrites(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		s.StaleReads(c.ID, true)
		c.create("/mine", 1)
		c.stat("/mine")
		s.StaleReads(12345, true) // nobody
	})
}

func TestCutOffFollower(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, other := rawSession(t, s), rawSession(t, s)
		c.create("/e", 1)
		c.ok(OpExists, "/e", true)
		s.CutOffFollower(c.ID)
		for range 4 {
			time.Sleep(3 * time.Second)
			c.ok(OpPing)
			other.ok(OpPing)
			if st := c.stat("/e"); st.EphemeralOwner != c.ID {
				t.Errorf("%+v", st)
			}
		}
		if other.try(OpExists, "/e", false) != NoNode {
			t.Error("the pings of a client of a cut-off follower kept its session alive")
		}
		c.expect() // of nothing

		c.send(OpCreate, "/x", []byte{}, openACL, 0)
		c.send(OpExists, "/e", false)
		c.send(OpPing)
		if a := c.reply(); a.xid != xidPing {
			t.Errorf("answered out of order: %d", a.xid)
		}
		if c.silent(); s.Exists("/x") {
			t.Errorf("carried out:\n%s", s.Tree())
		}
		s.Heal()
		if how := c.closed(); how != "reset" {
			t.Errorf("healed: %s", how)
		}
		if c = c.resume(s); c.ID != 0 {
			t.Error("the expired session was resumed")
		}
	})
}

func TestSyncIsNotAnsweredByACutOffFollower(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		s.CutOffFollower(0)
		c.send(OpSync, "/")
		c.silent()
		if c2 := c.resume(s); c2.ID != c.ID { // a new connection is to a healthy server
			t.Error("the session is gone")
		} else {
			c2.ok(OpSync, "/")
		}
	})
}
