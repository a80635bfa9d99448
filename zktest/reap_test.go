package zktest

import (
	"slices"
	"testing"
	"time"
)

func TestContainerIsReaped(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		for _, path := range []string{"/used", "/unused", "/full"} {
			a := c.ok(OpCreateContainer, path, []byte{}, openACL, int(modeContainer))
			if got, st := a.Text(), a.stat(); got != path || st.EphemeralOwner != 0 {
				t.Errorf("%s %+v", got, st)
			}
		}
		c.create("/used/x", 0)
		c.create("/full/x", 0)
		c.ok(OpDelete, "/used/x", -1)
		c.ok(OpExists, "/used", true)
		for range 9 {
			c.ok(OpPing)
			time.Sleep(time.Second)
		}
		if !s.Exists("/used") {
			t.Error("reaped before its time")
		}
		time.Sleep(2 * time.Second)
		c.ok(OpPing)
		if s.Exists("/used") || !s.Exists("/unused") || !s.Exists("/full") {
			t.Errorf("after the reaping:\n%s", s.Tree())
		}
		if !slices.Equal(c.events, []string{"deleted /used"}) {
			t.Errorf("events %v", c.events)
		}
	}, ReapInterval(10*time.Second))
}

func TestNodePastItsTimeIsReaped(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.ok(OpCreateTTL, "/ttl", []byte{}, openACL, int(modeTTL), int64(2500))
		seq := c.ok(OpCreateTTL, "/s-", []byte{}, openACL, int(modeSequentialTTL), int64(60_000)).Text()
		if c.try(OpCreateTTL, "/no", []byte{}, openACL, 5, int64(0)) != BadArguments ||
			c.try(OpCreateTTL, "/no", []byte{}, openACL, 0, int64(-1)) != BadArguments {
			t.Error("a bad time to live was taken")
		}
		time.Sleep(1500 * time.Millisecond)
		c.ok(OpSetData, "/ttl", []byte{}, -1) // its time starts anew
		time.Sleep(2 * time.Second)
		if !s.Exists("/ttl") {
			t.Error("reaped before its time")
		}
		time.Sleep(2 * time.Second)
		if s.Exists("/ttl") || !s.Exists(seq) {
			t.Errorf("after the reaping:\n%s", s.Tree())
		}
	}, ReapInterval(time.Second))
}

func TestServerWithoutContainers(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		if code := c.try(OpCreateContainer, "/c", []byte{}, openACL, 4); code != Unimplemented {
			t.Errorf("%v", code)
		}
		if how := c.closed(); how != "closed" {
			t.Error(how)
		}
	}, WithoutContainers())
}
