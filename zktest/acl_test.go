package zktest

import (
	"slices"
	"testing"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

const digestOfUP = "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=" // of u:p

func TestACLIsEnforced(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		owner, other := rawSession(t, s), rawSession(t, s)
		owner.ok(OpAuth, 0, "digest", []byte("u:p"))
		owner.ok(OpCreate, "/a", []byte{}, []jute.ACL{jute.Entry(0x1f, "auth", "")}, 0)
		for what, code := range map[string]Code{
			"read":   other.try(OpGetData, "/a", false),
			"list":   other.try(OpGetChildren, "/a", false),
			"set":    other.try(OpSetData, "/a", []byte{}, -1),
			"create": other.try(OpCreate, "/a/x", []byte{}, openACL, 0),
			"getACL": other.try(OpGetACL, "/a"),
			"setACL": other.try(OpSetACL, "/a", openACL, -1),
		} {
			if code != NoAuth {
				t.Errorf("%s: %v", what, code)
			}
		}
		if _, results := other.multi([]any{OpCheck, "/a", -1}); !slices.Equal(results, []string{"-102"}) {
			t.Errorf("check: %v", results)
		}
		other.ok(OpExists, "/a", false) // needs no permission
		owner.ok(OpCreate, "/a/x", []byte{}, openACL, 0)
		if code := other.try(OpDelete, "/a/x", -1); code != NoAuth {
			t.Errorf("delete asks the parent: %v", code)
		}
		owner.ok(OpDelete, "/a/x", -1)
		other.ok(OpDelete, "/a", -1) // also here it is the parent that counts
	})
}

func TestDigestsAreHiddenFromReaders(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		owner, reader := rawSession(t, s), rawSession(t, s)
		owner.ok(OpAuth, 0, "digest", []byte("u:p"))
		acl := []jute.ACL{jute.Entry(permRead, "world", "anyone"), jute.Entry(0x1f, "digest", digestOfUP)}
		owner.ok(OpCreate, "/a", []byte{}, acl, 0)
		if got := owner.ok(OpGetACL, "/a").ACLs(); !slices.Equal(got, acl) {
			t.Errorf("owner sees %v", got)
		}
		if got := reader.ok(OpGetACL, "/a").ACLs(); got[1].ID != "u:x" {
			t.Errorf("reader sees %v", got)
		}
		st := owner.ok(OpSetACL, "/a", openACL, 0).stat()
		if st.Aversion != 1 || st.Mzxid != st.Czxid {
			t.Errorf("%+v", st)
		}
	})
}

func TestACLOfAddresses(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.ok(OpCreate, "/here", []byte{}, []jute.ACL{jute.Entry(0x1f, "ip", "127.0.0.0/8")}, 0)
		c.ok(OpCreate, "/elsewhere", []byte{}, []jute.ACL{jute.Entry(0x1f, "ip", "10.1.2.3")}, 0)
		c.ok(OpGetData, "/here", false)
		if code := c.try(OpGetData, "/elsewhere", false); code != NoAuth {
			t.Errorf("%v", code)
		}
	})
}

func TestACLThatMakesNoSense(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		for _, a := range []jute.ACL{
			jute.Entry(31, "world", "x"), jute.Entry(31, "auth", ""), jute.Entry(31, "digest", "a"), jute.Entry(31, "digest", "a:b:c"),
			jute.Entry(31, "ip", "zz"), jute.Entry(31, "ip", "10.0.0.0/99"), jute.Entry(31, "unknown", "x"),
		} {
			if code := c.try(OpCreate, "/x", []byte{}, []jute.ACL{a}, 0); code != InvalidACL {
				t.Errorf("%v: %v", a, code)
			}
		}
	})
}

func TestFailedAuthEndsTheConnection(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server) {
		c := rawSession(t, s)
		c.sendXid(-4, OpAuth, 0, "nope", []byte("x"))
		if a := c.reply(); a.xid != -4 || a.code != AuthFailed || a.zxid != 0 {
			t.Errorf("%d %v %d", a.xid, a.code, a.zxid)
		}
		if how := c.closed(); how != "closed" {
			t.Error(how)
		}
		if len(s.Sessions()) != 1 {
			t.Error("the session went with the connection")
		}
	})
}

func acl(perms int32, scheme, id string) []jute.ACL { return []jute.ACL{jute.Entry(perms, scheme, id)} }
