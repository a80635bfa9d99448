package zktest

import (
	"reflect"
	"slices"
	"testing"
)

func TestMultiSucceedsAsOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		a, results := c.multi(
			[]any{OpCreate, "/m", []byte{}, openACL, 0},
			[]any{OpCreate2, "/m/k-", []byte{}, openACL, 3},
			[]any{OpSetData, "/m", []byte("1"), 0},
			[]any{OpCheck, "/m", 1},
			[]any{OpDelete, "/m/k-0000000000", 0},
			[]any{OpCreateContainer, "/c", []byte{}, openACL, 4},
		)
		want := []string{"create /m", "create /m/k-0000000000", "set v1", "check", "delete", "create2 /c v0"}
		if a.code != codeOK || !slices.Equal(results, want) {
			t.Errorf("%v %v", a.code, results)
		}
		st := c.stat("/m")
		if st.Czxid != a.zxid || st.Mzxid != a.zxid || st.Pzxid != a.zxid || st.Cversion != 2 || st.NumChildren != 0 {
			t.Errorf("%+v, zxid %d", st, a.zxid)
		}
	})
}

func TestMultiFailsAsOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c, w := rawSession(t, s), rawSession(t, s)
		c.create("/a", 0)
		c.create("/a/x", 1)
		w.ok(OpGetData, "/a", true)
		w.ok(OpGetChildren, "/a", true)
		before := s.snapshot()
		a, results := c.multi(
			[]any{OpDelete, "/a/x", -1},
			[]any{OpSetData, "/a", []byte("new"), -1},
			[]any{OpCreate, "/a/x", []byte{}, openACL, 0},
			[]any{OpCreate, "/a/y-", []byte{}, openACL, 3},
			[]any{OpCheck, "/none", -1},
			[]any{OpCreate, "/b", []byte{}, openACL, 0},
		)
		if a.code != codeOK || !slices.Equal(results, []string{"0", "0", "0", "0", "-101", "-2"}) {
			t.Errorf("%v %v", a.code, results)
		}
		after := s.snapshot()
		if after.zxid != before.zxid+1 {
			t.Errorf("zxid went from %d to %d", before.zxid, after.zxid)
		}
		after.zxid = before.zxid
		if !reflect.DeepEqual(before, after) {
			t.Errorf("something is left of a failed multi:\n%s", s.Tree())
		}
		if w.ok(OpPing); len(w.events) != 0 {
			t.Errorf("watches heard of a failed multi: %v", w.events)
		}
		if got := c.create("/a/z-", 2); got != "/a/z-0000000001" {
			t.Errorf("the failed multi took a sequence number: %s", got)
		}
	})
}

func (s *Server) snapshot() *tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.clone()
}

func TestMultiOfChecksTakesAZxid(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/a", 1)
		before := s.Zxid()
		a, results := c.multi([]any{OpCheck, "/a", -1}, []any{OpCheck, "/a", 0})
		if !slices.Equal(results, []string{"check", "check"}) || a.zxid != before+1 {
			t.Errorf("%v at %d after %d", results, a.zxid, before)
		}
		if a, results := c.multi(); len(results) != 0 || a.zxid != before+2 {
			t.Errorf("empty: %v at %d", results, a.zxid)
		}
	})
}

func TestMultiThatMakesNoSense(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		for what, fields := range map[string][]any{
			"unknown part":     {42, false, -1, "/a", -1, true, -1},
			"read as a part":   {int(OpExists), false, -1, "/a", false, -1, true, -1},
			"setACL as a part": {int(OpSetACL), false, -1, "/", openACL, -1, -1, true, -1},
			"TTL without one":  {int(OpCreate), false, -1, "/a", []byte{}, openACL, 5, -1, true, -1},
			"cut short":        {int(OpDelete), false, -1, "/a"},
			"without an end":   {int(OpDelete), false, -1, "/a", -1},
		} {
			if code := c.try(OpMulti, fields...); code != MarshallingError {
				t.Errorf("%s: %v", what, code)
			}
		}
	})
}

func TestModeDecidesInMulti(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		_, results := c.multi(
			[]any{OpCreate, "/container", []byte{}, openACL, 4},
			[]any{OpCreateContainer, "/persistent", []byte{}, openACL, 0},
			[]any{OpCreateContainer, "/ephemeral", []byte{}, openACL, 1},
			[]any{OpCreateTTL, "/ttl", []byte{}, openACL, 5, int64(1000)})
		want := []string{"create2 /container v0", "create /persistent", "create /ephemeral", "create2 /ttl v0"}
		if !slices.Equal(results, want) {
			t.Errorf("%v", results)
		}
		if st := c.stat("/ephemeral"); st.EphemeralOwner != c.ID {
			t.Errorf("%+v", st)
		}
		if tr := s.snapshot(); tr.get("/container").owner != ownerContainer || tr.get("/persistent").owner != 0 {
			t.Errorf("\n%s", s.Tree())
		}
	})
}
