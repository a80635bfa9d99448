package truth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockkeeper/lockkeeper/internal/jute"
	"github.com/lockkeeper/lockkeeper/internal/rawzk"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// notes puts what a server says into words that don't depend on the server:
// zxids are counted from the creation of the script's directory, and sessions
// have the names of their clients. Times are left out, but all nodes that are told
// to have changed at one zxid must be told to have changed at one time.
type notes struct {
	root     string
	ip       string // of the clients, as the server sees it
	base     int64
	sessions map[int64]string
	times    map[int64]int64 // by zxid
}

func newNotes(root string) *notes {
	return &notes{root: root, sessions: map[int64]string{}, times: map[int64]int64{}}
}

func (n *notes) zxid(z int64) string {
	if z <= 0 {
		return fmt.Sprintf("zxid %d", z)
	}
	return fmt.Sprintf("%+d", z-n.base)
}

func (n *notes) path(p string) string {
	if rest, ok := strings.CutPrefix(p, n.root); ok {
		p = "~" + rest
	}
	return fmt.Sprintf("%q", p)
}

func (n *notes) paths(list []string) string {
	words := make([]string, len(list))
	for i, p := range list {
		words[i] = n.path(p)
	}
	return "[" + strings.Join(words, " ") + "]"
}

func (n *notes) stat(s jute.Stat) string {
	owner := fmt.Sprint(s.EphemeralOwner)
	if name, ok := n.sessions[s.EphemeralOwner]; ok {
		owner = name
	}
	odd := n.time(s.Czxid, s.Ctime) + n.time(s.Mzxid, s.Mtime)
	return fmt.Sprintf("{c%s m%s p%s v%d cv%d av%d owner %s %d bytes %d children%s}",
		n.zxid(s.Czxid), n.zxid(s.Mzxid), n.zxid(s.Pzxid), s.Version, s.Cversion, s.Aversion, owner,
		s.DataLength, s.NumChildren, odd)
}

func (n *notes) time(zxid, ms int64) string {
	if known, ok := n.times[zxid]; ok && known != ms {
		return " ANOTHER TIME"
	}
	n.times[zxid] = ms
	return ""
}

// clientIP stands for the address of the clients, as the server sees it.
const clientIP = "$ip"

func (n *notes) acls(list []jute.ACL) []jute.ACL {
	for i := range list {
		list[i].ID = strings.ReplaceAll(list[i].ID, n.ip, clientIP)
	}
	return list
}

// events tells what a client has been told since it was last asked.
func (n *notes) events(c *client) string {
	var b strings.Builder
	for _, ev := range c.Events {
		kind := map[int32]string{1: "created", 2: "deleted", 3: "changed", 4: "children"}[ev.Type]
		if kind == "" || ev.State != 3 {
			kind = fmt.Sprintf("event %d in state %d", ev.Type, ev.State)
		}
		fmt.Fprintf(&b, " <%s %s %s>", kind, n.path(ev.Path), n.zxid(ev.Zxid))
	}
	c.Events = nil
	return b.String()
}

// answer tells what a request was answered, to the last byte.
func (n *notes) answer(op zktest.Op, a rawzk.Answer) string {
	text := fmt.Sprintf("%v at %s", zktest.Code(a.Code), n.zxid(a.Zxid))
	if a.Code == 0 {
		text += n.body(op, a.Decoder)
	}
	if a.Err != nil {
		text += fmt.Sprintf(" (%v)", a.Err)
	}
	if len(a.Buf) > 0 {
		text += fmt.Sprintf(", and %d bytes more", len(a.Buf))
	}
	return text
}

func (n *notes) body(op zktest.Op, d *jute.Decoder) string {
	switch op {
	case zktest.OpCreate, zktest.OpSync:
		return " " + n.path(d.Text())
	case zktest.OpCreate2, zktest.OpCreateContainer, zktest.OpCreateTTL:
		return " " + n.path(d.Text()) + " " + n.stat(d.Stat())
	case zktest.OpExists, zktest.OpSetData, zktest.OpSetACL:
		return " " + n.stat(d.Stat())
	case zktest.OpGetData:
		return " " + show(d.Bytes()) + " " + n.stat(d.Stat())
	case zktest.OpGetACL:
		return fmt.Sprintf(" %v ", n.acls(d.ACLs())) + n.stat(d.Stat())
	case zktest.OpGetChildren:
		return fmt.Sprintf(" %q", d.Strings())
	case zktest.OpGetChildren2:
		return fmt.Sprintf(" %q ", d.Strings()) + n.stat(d.Stat())
	case zktest.OpGetEphemerals:
		return " " + n.paths(d.Strings())
	case zktest.OpGetAllChildrenNumber, zktest.OpAddWatch:
		return fmt.Sprintf(" %d", d.Int32())
	case zktest.OpSASL:
		return " " + show(d.Bytes())
	case zktest.OpWhoAmI:
		var ids []string
		for range d.Int32() {
			ids = append(ids, d.Text()+":"+strings.ReplaceAll(d.Text(), n.ip, clientIP))
		}
		slices.Sort(ids) // a real server has them in a hash table
		return fmt.Sprintf(" %q", ids)
	case zktest.OpMulti, zktest.OpMultiRead:
		return n.results(d)
	}
	return ""
}

// results tells what became of the parts of a multi.
func (n *notes) results(d *jute.Decoder) string {
	var b strings.Builder
	for d.Err == nil {
		op, done, code := d.Int32(), d.Bool(), d.Int32()
		if done {
			fmt.Fprintf(&b, " end(%d %d)", op, code)
			break
		}
		fmt.Fprintf(&b, " (%v %d", zktest.Op(op), code)
		if op == -1 {
			fmt.Fprintf(&b, " %d", d.Int32())
		} else {
			b.WriteString(n.body(zktest.Op(op), d))
		}
		b.WriteString(")")
	}
	return b.String()
}
