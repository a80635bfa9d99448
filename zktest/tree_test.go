package zktest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

func TestStatOfCreatedNode(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		time.Sleep(time.Second)
		a := c.ok(OpCreate2, "/a", []byte("data"), openACL, int(modeEphemeral))
		path, got := a.Text(), a.stat()
		now := time.Now().UnixMilli()
		want := Stat{Czxid: 2, Mzxid: 2, Pzxid: 2, Ctime: now, Mtime: now, EphemeralOwner: c.ID, DataLength: 4}
		if path != "/a" || got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
		if a.zxid != 2 {
			t.Errorf("answered at zxid %d", a.zxid)
		}
	})
}

func TestParentCountsItsChildren(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/p", 0)
		check := func(when string, cversion, children int32, pzxid int64) {
			t.Helper()
			if st := c.stat("/p"); st.Cversion != cversion || st.NumChildren != children || st.Pzxid != pzxid {
				t.Errorf("%s: %+v", when, st)
			}
		}
		check("made", 0, 0, 2)
		c.create("/p/a", 0)
		c.create("/p/b", 0)
		check("two children", 2, 2, 4)
		c.ok(OpDelete, "/p/a", -1)
		check("one deleted", 3, 1, 5)
		c.ok(OpSetData, "/p", []byte("x"), 0)
		check("data set", 3, 1, 5)
		if st := c.stat("/p"); st.Version != 1 || st.Mzxid != 6 || st.Czxid != 2 || st.DataLength != 1 {
			t.Errorf("data set: %+v", st)
		}
	})
}

func TestSequenceCountsEveryCreation(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/p", 0)
		c.create("/p/plain", 0)
		first := c.create("/p/n-", int(modeEphemeralSequential))
		c.ok(OpDelete, first, -1)
		second := c.create("/p/n-", int(modeSequential))
		if first != "/p/n-0000000001" || second != "/p/n-0000000002" {
			t.Errorf("%s, %s", first, second)
		}
		if got := c.create("/p/", int(modeSequential)); got != "/p/0000000003" {
			t.Errorf("suffix alone: %s", got)
		}
	})
}

func TestSequenceSticksAtItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/p", 0)
		if err := s.SetSequence("/p", math.MaxInt32-1); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"/p/a-2147483646", "/p/b-2147483647", "/p/c-2147483647"} {
			if got := c.create("/p/"+want[3:5], int(modeSequential)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if code := c.try(OpCreate, "/p/c-", []byte{}, openACL, 2); code != NodeExists {
			t.Errorf("the same name again: %v", code)
		}
		if s.SetSequence("/p", 1<<31) == nil || s.SetSequence("/none", 1) == nil {
			t.Error("SetSequence took nonsense")
		}
	})
}

func TestFailedWritesTakeZxids(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		before := s.Zxid()
		a := c.call(OpDelete, "/none", -1)
		if a.code != NoNode || a.zxid != before+1 || s.Zxid() != before+1 {
			t.Errorf("%v at %d, before %d", a.code, a.zxid, before)
		}
		if a := c.call(OpGetData, "/none", false); a.code != NoNode || a.zxid != before+1 {
			t.Errorf("a failed read: %v at %d", a.code, a.zxid)
		}
	})
}

func TestErrorCodes(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/p", 0)
		c.create("/p/eph", 1)
		create := func(path string, mode int) Code {
			return c.try(OpCreate, path, []byte{}, openACL, mode)
		}
		for _, tc := range []struct {
			what      string
			got, want Code
		}{
			{"there already", create("/p", 0), NodeExists},
			{"no parent", create("/none/x", 0), NoNode},
			{"child of an ephemeral", create("/p/eph/x", 0), NoChildrenForEphemerals},
			{"no slash", create("x", 0), BadArguments},
			{"no leading slash", create("x/y", 0), NoNode},
			{"trailing slash", create("/p/", 0), BadArguments},
			{"empty element", create("/p//x", 0), NoNode},
			{"dot", create("/.", 0), BadArguments},
			{"zero byte", create("/p/a\x00", 0), BadArguments},
			{"control character", create("/p/a\x1f", 0), BadArguments},
			{"unknown mode", create("/p/x", 7), BadArguments},
			{"TTL mode without TTL", create("/p/x", 5), BadArguments},
			{"no ACL", c.try(OpCreate, "/p/x", []byte{}, []jute.ACL{}, 0), InvalidACL},
			{"delete with children", c.try(OpDelete, "/p", -1), NotEmpty},
			{"delete, version first", c.try(OpDelete, "/p", 5), BadVersion},
			{"delete nothing", c.try(OpDelete, "/none", -1), NoNode},
			{"delete the root", c.try(OpDelete, "/", -1), BadArguments},
			{"delete what is the server's", c.try(OpDelete, "/zookeeper/quota", -1), BadArguments},
			{"set, wrong version", c.try(OpSetData, "/p", []byte{}, 1), BadVersion},
			{"set nothing", c.try(OpSetData, "/none", []byte{}, -1), NoNode},
			{"set a bad path", c.try(OpSetData, "none", []byte{}, -1), BadArguments},
			{"read a bad path", c.try(OpGetData, "none", false), NoNode},
			{"setACL, wrong version", c.try(OpSetACL, "/p", openACL, 3), BadVersion},
			{"list nothing", c.try(OpGetChildren, "/none", false), NoNode},
			{"short request", c.try(OpCreate, "/p/x"), MarshallingError},
			{"short read", c.try(OpGetData), MarshallingError},
			{"reconfig", c.try(OpReconfig, "", "", "", int64(-1)), ReconfigDisabled},
		} {
			if tc.got != tc.want {
				t.Errorf("%s: %v, want %v", tc.what, tc.got, tc.want)
			}
		}
	})
}

func TestUnknownRequestEndsTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		if a := c.call(Op(77)); a.code != Unimplemented || a.zxid != -1 {
			t.Errorf("%v at %d", a.code, a.zxid)
		}
		if how := c.closed(); how != "closed" {
			t.Error(how)
		}
	})
}

func TestDataNilAndEmptyDiffer(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.ok(OpCreate, "/nil", []byte(nil), openACL, 0)
		c.ok(OpCreate, "/empty", []byte{}, openACL, 0)
		if d := c.ok(OpGetData, "/nil", false).Bytes(); d != nil {
			t.Errorf("nil became %v", d)
		}
		if d := c.ok(OpGetData, "/empty", false).Bytes(); d == nil {
			t.Error("empty became nil")
		}
	})
}

func TestListIsNotSorted(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.create("/p", 0)
		for i := range 20 {
			c.create(fmt.Sprintf("/p/x%d", i), 0)
		}
		a := c.ok(OpGetChildren2, "/p", false)
		names := a.Strings()
		if st := a.stat(); st.NumChildren != 20 {
			t.Errorf("%+v", st)
		}
		// As a real server lists them.
		want := []string{"x8", "x9", "x19", "x10", "x0", "x12", "x1", "x11", "x2", "x14", "x3", "x13", "x4", "x16", "x5", "x15", "x6", "x18", "x7", "x17"}
		if !slices.Equal(names, want) {
			t.Errorf("%v", names)
		}
		if got := s.Children("/p"); !slices.IsSorted(got) || len(got) != 20 {
			t.Errorf("Children: %v", got)
		}
	})
}

// checkTree fails the test if the tree's parts contradict each other.
func checkTree(t testing.TB, tr *tree) {
	t.Helper()
	ephemerals := 0
	for path, n := range tr.nodes {
		if path != "/" {
			parent, name := split(path)
			p := tr.nodes[parent]
			if p == nil {
				t.Fatalf("%s has no parent", path)
			}
			if _, ok := p.children[name]; !ok {
				t.Errorf("%s doesn't know its child %s", parent, name)
			}
			if isSession(p.owner) {
				t.Errorf("ephemeral %s has a child", parent)
			}
		}
		for name := range n.children {
			if path == "/" {
				path = ""
			}
			if tr.nodes[path+"/"+name] == nil {
				t.Errorf("%s lists a child %s that isn't there", path, name)
			}
		}
		if n.czxid > n.mzxid || n.mzxid > tr.zxid || n.pzxid > tr.zxid {
			t.Errorf("%s: zxids %d %d %d, tree %d", path, n.czxid, n.mzxid, n.pzxid, tr.zxid)
		}
		if isSession(n.owner) {
			ephemerals++
			if _, ok := tr.ephemerals[n.owner].paths[path]; !ok {
				t.Errorf("ephemeral %s isn't in the index", path)
			}
		}
	}
	for _, o := range tr.ephemerals {
		ephemerals -= len(o.paths)
	}
	if ephemerals != 0 {
		t.Errorf("the index of ephemerals is off by %d", ephemerals)
	}
}
