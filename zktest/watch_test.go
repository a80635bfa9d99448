package zktest

import (
	"slices"
	"testing"
)

// expect makes sure that everything has arrived, and compares the events since
// the last time.
func (c *rawClient) expect(want ...string) {
	c.t.Helper()
	c.ok(OpPing)
	if !slices.Equal(c.events, want) {
		c.t.Errorf("events %q, want %q", c.events, want)
	}
	c.events = nil
}

func TestWatchesFireOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		c.create("/p", 0)
		w.ok(OpGetData, "/p", true)
		w.ok(OpGetData, "/p", true) // the same one
		w.ok(OpGetChildren2, "/p", true)
		if w.try(OpExists, "/p/x", true) != NoNode || w.try(OpGetData, "/p/y", true) != NoNode {
			t.Error("found what isn't there")
		}
		if n := s.Watches(); n != 3 {
			t.Errorf("%d watches: getData must leave none on a missing node", n)
		}
		c.create("/p/y", 0)
		w.expect("children /p")
		c.create("/p/x", 0)
		w.expect("created /p/x")
		c.ok(OpSetData, "/p", []byte{}, -1)
		w.expect("changed /p")
		c.ok(OpSetData, "/p", []byte{}, -1)
		c.ok(OpDelete, "/p/x", -1)
		c.ok(OpSetACL, "/p", openACL, -1)
		w.expect()
		if n := s.Watches(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

func TestDeletionIsToldOncePerConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		c.create("/p", 0)
		c.create("/p/x", 0)
		for _, cl := range []*rawClient{c, w} {
			cl.ok(OpGetData, "/p/x", true)
			cl.ok(OpGetChildren, "/p/x", true)
			cl.ok(OpGetChildren, "/p", true)
		}
		c.send(OpDelete, "/p/x", -1)
		if c.reply(); len(c.events) != 2 {
			t.Errorf("one's own deletion is told before its answer: %v", c.events)
		}
		c.expect("deleted /p/x", "children /p")
		w.expect("deleted /p/x", "children /p")
	})
}

func TestChildWatchHearsOfTheNodesOwnEnd(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		w := rawSession(t, s)
		w.create("/x", 0)
		w.ok(OpGetChildren, "/x", true)
		if err := s.Set("/x", nil); err != nil {
			t.Fatal(err)
		}
		w.expect()
		if err := s.Delete("/x"); err != nil {
			t.Fatal(err)
		}
		w.expect("deleted /x")
	})
}

func TestWatcherHearsTheFirstChangeOfATransaction(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		c.create("/x", 0)
		w.ok(OpGetData, "/x", true)
		c.multi([]any{OpSetData, "/x", []byte{}, -1}, []any{OpDelete, "/x", -1})
		w.expect("changed /x")
	})
}

func TestWatchesEndWithTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		w := rawSession(t, s)
		w.ok(OpGetChildren, "/", true)
		w2 := w.resume(s)
		if n := s.Watches(); n != 0 {
			t.Errorf("%d watches outlive their connection", n)
		}
		if err := s.Create("/x", nil); err != nil {
			t.Fatal(err)
		}
		w2.expect()
	})
}

func TestSetWatchesTellsWhatWasMissed(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		for _, path := range []string{"/changed", "/gone", "/parent", "/quiet", "/same"} {
			c.create(path, 0)
		}
		since := w.ok(OpPing).zxid
		c.ok(OpSetData, "/changed", []byte{}, -1)
		c.ok(OpDelete, "/gone", -1)
		c.create("/parent/x", 0)
		c.create("/new", 0)
		w.send(OpSetWatches, since,
			[]string{"/changed", "/gone", "/same"}, []string{"/new", "/never"}, []string{"/parent", "/gone", "/quiet"})
		if a := w.reply(); a.code != codeOK || len(w.events) != 5 {
			t.Errorf("%v, after events %v", a.code, w.events)
		}
		w.expect("changed /changed", "deleted /gone", "created /new", "children /parent", "deleted /gone")
		if n := s.Watches(); n != 3 {
			t.Errorf("%d watches", n)
		}
		c.ok(OpDelete, "/same", -1)
		c.create("/never", 0)
		c.create("/quiet/x", 0)
		w.expect("deleted /same", "created /never", "children /quiet")
	})
}
