package truth

import (
	"fmt"
	"strings"

	"github.com/lockkeeper/lockkeeper/internal/jute"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// script is what clients do, one step at a time. Clients have names and are
// there from the start, in the order of the names, each with a session of its
// own.
type script []step

// step is a client's name, and then an operation and its fields as they are on
// the wire, or a verb and what belongs to it. In fields, "~" at the beginning of a
// path is the script's own directory.
type step []any

// verb is what a client does other than sending a request.
type verb string

const (
	drop   verb = "drop"   // closes its connection, and waits until the server knows
	resume verb = "resume" // goes on with its session on a new connection
	open   verb = "open"   // opens a new session, if it is not connected
	send   verb = "send"   // sends the bytes, as they are, and waits for the end of the connection
	xid    verb = "xid"    // sends a request with the given xid
	atOnce verb = "atOnce" // sends several requests, without waiting for answers
)

// since is a zxid, counted from the creation of the script's directory.
type since int64

// The modes of a creation.
const (
	persistent = iota
	ephemeral
	sequential
	ephemeralSequential
	container
	ttl
	sequentialTTL
)

var (
	world = []jute.ACL{jute.Entry(31, "world", "anyone")}
	none  = []byte{}
)

func data(s string) []byte { return []byte(s) }

func acl(perms int32, scheme, id string) []jute.ACL {
	return []jute.ACL{jute.Entry(perms, scheme, id)}
}

// multi is a step with several requests in one.
func multi(who string, parts ...[]any) step { return several(who, zktest.OpMulti, parts) }

// multiRead is a step with several reads in one.
func multiRead(who string, parts ...[]any) step { return several(who, zktest.OpMultiRead, parts) }

func several(who string, op zktest.Op, parts [][]any) step {
	s := step{who, op}
	for _, p := range parts {
		s = append(s, int32(p[0].(zktest.Op)), false, -1, p[1:])
	}
	return append(s, -1, true, -1)
}

func (s step) who() string { return s[0].(string) }

func (s step) String() string {
	words := []string{s.who(), fmt.Sprint(s[1])}
	for _, f := range s[2:] {
		words = append(words, show(f))
	}
	return strings.Join(words, " ")
}

func show(field any) string {
	switch f := field.(type) {
	case []byte:
		if f == nil {
			return "nil"
		}
		return fmt.Sprintf("%q", f)
	case string:
		return fmt.Sprintf("%q", f)
	case []any:
		words := make([]string, len(f))
		for i := range f {
			words[i] = show(f[i])
		}
		return "[" + strings.Join(words, " ") + "]"
	}
	return fmt.Sprint(field)
}

func (s script) String() string {
	var b strings.Builder
	for _, st := range s {
		fmt.Fprintf(&b, "    %v\n", st)
	}
	return b.String()
}

// clients returns the names of those who take part, in order of appearance.
func (s script) clients() []string {
	var names []string
	seen := map[string]bool{}
	for _, st := range s {
		if !seen[st.who()] {
			seen[st.who()] = true
			names = append(names, st.who())
		}
	}
	return names
}
