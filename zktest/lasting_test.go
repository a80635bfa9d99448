package zktest

import (
	"fmt"
	"slices"
	"testing"
)

func TestLastingWatchStays(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		c.create("/p", 0)
		w.ok(OpAddWatch, "/p", 0)
		for range 2 {
			c.ok(OpSetData, "/p", []byte{}, -1)
			c.create("/p/x", 0)
			c.create("/p/x/y", 0)
			c.ok(OpDelete, "/p/x/y", -1)
			c.ok(OpDelete, "/p/x", -1)
		}
		w.expect("changed /p", "children /p", "children /p", "changed /p", "children /p", "children /p")
		c.ok(OpDelete, "/p", -1)
		c.create("/p", 0)
		w.expect("deleted /p", "created /p")
		if n, of := s.Watches(), s.Sessions()[1].Watches; n != 1 || of != 1 {
			t.Errorf("%d watches, %d of the session", n, of)
		}
	})
}

func TestRecursiveWatchHearsOfEverythingBelow(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		w.ok(OpAddWatch, "/p", 1) // before there is such a node
		c.create("/p", 0)
		c.create("/pp", 0)
		c.create("/p/x", 0)
		c.create("/p/x/y", 1)
		c.ok(OpSetData, "/p/x/y", []byte{}, -1)
		c.ok(OpCloseSession)
		w.expect("created /p", "created /p/x", "created /p/x/y", "changed /p/x/y", "deleted /p/x/y")
		w.ok(OpAddWatch, "/", 1)
		w.create("/q", 0)
		w.create("/p/z", 0)
		w.expect("created /q", "created /p/z")
	})
}

func TestOneShotWatchTakesThePlaceOfALastingOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		w := rawSession(t, s)
		w.create("/p", 0)
		w.ok(OpAddWatch, "/p", 1)
		w.ok(OpGetData, "/p", true)
		w.ok(OpSetData, "/p", []byte{}, -1)
		w.ok(OpSetData, "/p", []byte{}, -1)
		w.create("/p/x", 0)
		w.expect("changed /p")
		w.ok(OpDelete, "/p/x", -1) // the half of it that is among the children's
		w.expect("deleted /p/x")
	})
}

func TestWatchIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		w.create("/p", 0)
		w.ok(OpExists, "/p", true)
		w.ok(OpGetChildren, "/p", true)
		for _, step := range []struct {
			c    *rawClient
			op   Op
			kind int32
			want Code
		}{
			{w, OpCheckWatches, kindAny, codeOK},
			{c, OpCheckWatches, kindData, codeOK}, // anybody's counts
			{c, OpRemoveWatches, kindData, NoWatcher},
			{w, OpRemoveWatches, kindData, codeOK},
			{w, OpRemoveWatches, kindData, NoWatcher},
			{w, OpCheckWatches, kindData, NoWatcher},
			{w, OpCheckWatches, kindAny, codeOK},
			{w, OpRemoveWatches, kindAny, codeOK},
			{w, OpCheckWatches, kindAny, NoWatcher},
			{w, OpRemoveWatches, 0, MarshallingError},
		} {
			if code := step.c.try(step.op, "/p", step.kind); code != step.want {
				t.Errorf("%+v: %v", step, code)
			}
		}
		w.ok(OpAddWatch, "/p", 1)
		w.ok(OpRemoveWatches, "/p", kindAny)
		w.create("/p/x", 0)
		w.expect()
		if s.Watches() != 0 {
			t.Error("something is left")
		}
	})
}

func TestSetWatchesAlsoThoseThatLast(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		w := rawSession(t, s)
		w.create("/p", 0)
		w = w.resume(s)
		none := []string{}
		w.sendXid(-8, OpSetWatches2, int64(0), none, none, []string{"/gone"}, []string{"/p"}, []string{"/q"})
		if a := w.reply(); a.xid != -8 || a.code != codeOK {
			t.Errorf("%+v", a)
		}
		w.create("/p/x", 0)
		w.create("/q", 0)
		w.create("/q/x", 0)
		w.expect("deleted /gone", "children /p", "created /q", "created /q/x")
	})
}

func TestWhoMayNotReadIsNotTold(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		c.ok(OpAuth, 0, "digest", []byte("u:p"))
		own := acl(31, "auth", "")
		c.ok(OpCreate, "/p", []byte{}, own, 0)
		w.ok(OpExists, "/p", true)
		w.ok(OpAddWatch, "/q", 1)
		c.ok(OpSetData, "/p", []byte{}, -1)
		c.ok(OpCreate, "/q", []byte{}, own, 0)
		c.ok(OpCreate, "/q/x", []byte{}, openACL, 0)
		w.expect("created /q/x")
		if n := s.Watches(); n != 1 {
			t.Errorf("%d watches: the one-shot one is used up all the same", n)
		}
	})
}

func TestEventsCarryZxidsIfAsked(t *testing.T) {
	for _, asked := range []bool{false, true} {
		var opts []Option
		if asked {
			opts = []Option{EventZxids()}
		}
		bubble(t, func(t *testing.T, s *Server) {
			w := rawSession(t, s)
			w.ok(OpGetChildren, "/", true)
			w.send(OpCreate, "/x", []byte{}, openACL, 0)
			ev, err := w.next()
			if want := map[bool]int64{false: -1, true: 2}[asked]; err != nil || ev.zxid != want {
				t.Errorf("asked %v: %d, %v", asked, ev.zxid, err)
			}
		}, opts...)
	}
}

func TestMultiRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.ok(OpCreate, "/p", []byte("x"), openACL, 0)
		c.create("/p/c", 0)
		read := func(op Op, path string) []any { return []any{int(op), false, -1, path, true} }
		end := []any{-1, true, -1}
		a := c.ok(OpMultiRead, read(OpGetData, "/p"), read(OpGetData, "/none"), read(OpGetChildren, "/p"), end)
		head := func(want Op, code Code) {
			t.Helper()
			if op, done, got := Op(a.Int32()), a.Bool(), Code(a.Int32()); op != want || done || got != code {
				t.Errorf("%v %v %v", op, done, got)
			}
		}
		head(OpGetData, codeOK)
		if data, st := a.Bytes(), a.stat(); string(data) != "x" || st.NumChildren != 1 {
			t.Errorf("%q %+v", data, st)
		}
		head(opError, NoNode)
		if code := Code(a.Int32()); code != NoNode {
			t.Error(code)
		}
		head(OpGetChildren, codeOK)
		if names := a.Strings(); !slices.Equal(names, []string{"c"}) {
			t.Error(names)
		}
		if n := s.Watches(); n != 0 {
			t.Errorf("%d watches: a multiRead sets none", n)
		}
		del := []any{int(OpDelete), false, -1, "/p/c", -1}
		for what, fields := range map[string][]any{"writes": {del, end}, "a mixture": {read(OpGetData, "/p"), del, end}, "no end": {read(OpGetData, "/p")}} {
			if code := c.try(OpMultiRead, fields...); code != MarshallingError || !s.Exists("/p/c") {
				t.Errorf("%s: %v", what, code)
			}
		}
	})
}

func TestQueries(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, other := rawSession(t, s), rawSession(t, s)
		c.ok(OpAuth, 0, "digest", []byte("u:p"))
		c.ok(OpAuth, 0, "digest", []byte("u:p"))
		c.create("/p", 0)
		c.create("/p/x", 1)
		c.create("/px", 1)
		other.create("/p/y", 1)
		for prefix, want := range map[string][]string{"/p/": {"/p/x"}, "/p": {"/p/x", "/px"}, "": {"/p/x", "/px"}, "/q": {}} {
			got := c.ok(OpGetEphemerals, prefix).Strings()
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%q: %q", prefix, got)
			}
		}
		for path, want := range map[string]int32{"/p": 2, "/p/x": 0, "/": 7} {
			if got := c.ok(OpGetAllChildrenNumber, path).Int32(); got != want {
				t.Errorf("%s: %d", path, got)
			}
		}
		if code := c.try(OpGetAllChildrenNumber, "/none"); code != NoNode {
			t.Error(code)
		}
		a := c.ok(OpWhoAmI)
		var ids []string
		for range a.Int32() {
			ids = append(ids, fmt.Sprintf("%s %s", a.Text(), a.Text()))
		}
		if !slices.Equal(ids, []string{"ip 127.0.0.1", "digest u"}) {
			t.Errorf("%q", ids)
		}
	})
}

func TestCountsOfSessions(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		w.ok(OpGetChildren, "/", true)
		c.create("/x", 0)
		w.expect("children /")
		n := s.Requests()
		of, all := n.Session(w.ID), n.Session(c.ID)
		if of.Of(OpGetChildren) != 1 || of.Of(OpCreate) != 0 || of.Events != 1 || of.BytesIn == 0 || of.BytesOut == 0 ||
			all.Of(OpCreate) != 1 || all.Events != 0 || n.Session(5).Total() != 0 || n.Session(0).Of(OpConnect) != 2 {
			t.Errorf("%+v, %+v", of, all)
		}
		var sum int64
		for _, id := range []int64{0, c.ID, w.ID} {
			sum += n.Session(id).BytesIn
		}
		if sum != n.BytesIn {
			t.Errorf("the sum of all is %d, and all are %d", sum, n.BytesIn)
		}
	})
}
