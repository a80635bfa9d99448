package truth

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/internal/jute"
	"github.com/lockkeeper/lockkeeper/internal/rawzk"
	"github.com/lockkeeper/lockkeeper/zktest"
)

const (
	sessionTimeout = 30_000 // ms: longer than any script
	patience       = 20 * time.Second
)

// player plays one script to one server and writes down what comes back.
type player struct {
	t       fataler
	addr    string
	root    string
	clients map[string]*client
	names   []string
	former  []*client // whose names others have now
	note    *notes
	record  []string
}

// fataler is a test, also one of rapid's.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

type client struct {
	*rawzk.Client
	up bool
}

// play returns what the server at addr makes of a script, step by step, and at
// the end of the tree. Nothing else may happen on that server meanwhile, so that
// its zxids can be told.
func play(t fataler, addr, root string, s script) []string {
	t.Helper()
	p := &player{t: t, addr: addr, root: root, clients: map[string]*client{}, names: s.clients(), note: newNotes(root)}
	slices.Sort(p.names)
	for _, name := range p.names {
		p.open(name)
	}
	defer p.hangUp()
	observer := p.open("observer")
	a, err := observer.Call(int32(zktest.OpCreate), root, none, world, persistent)
	if err != nil || a.Code != 0 {
		t.Fatalf("%s: create %s: %d, %v", addr, root, a.Code, err)
	}
	p.note.base = a.Zxid
	a, err = observer.Call(int32(zktest.OpWhoAmI))
	if err != nil || a.Int32() != 1 || a.Text() != "ip" {
		t.Fatalf("%s: who am I? %d, %v", addr, a.Code, err)
	}
	p.note.ip = a.Text()
	for _, st := range s {
		p.record = append(p.record, p.step(st)+p.events())
	}
	p.walk("~")
	for _, name := range append(p.names, "observer") {
		p.end(p.clients[name])
	}
	for _, c := range p.former {
		p.end(c)
	}
	return p.record
}

func (p *player) open(name string) *client {
	p.t.Helper()
	c := &client{Client: rawzk.New(p.dial()), up: true}
	if err := c.Hello(sessionTimeout); err != nil || c.ID == 0 {
		p.t.Fatalf("%s: no session for %s: %v", p.addr, name, err)
	}
	p.note.sessions[c.ID] = name
	p.clients[name] = c
	return c
}

func (p *player) dial() net.Conn {
	p.t.Helper()
	nc, err := net.DialTimeout("tcp", p.addr, patience)
	if err != nil {
		p.t.Fatalf("%v", err)
	}
	nc.SetDeadline(time.Now().Add(patience))
	return nc
}

func (p *player) step(st step) string {
	c := p.clients[st.who()]
	c.Conn.SetDeadline(time.Now().Add(patience))
	switch what := st[1].(type) {
	case verb:
		return p.do(st.who(), c, what, st[2:])
	case zktest.Op:
		if !c.up {
			return "is not connected"
		}
		return p.request(c, c.Xid+1, what, st[2:])
	}
	panic(fmt.Sprintf("step %v", st))
}

func (p *player) request(c *client, xid int32, op zktest.Op, fields []any) string {
	if xid > 0 {
		c.Xid = xid
	}
	err := c.SendXid(xid, int32(op), p.fields(fields)...)
	if err == nil && op == zktest.OpCheck {
		// There may be no answer at all; a ping has one.
		err = c.SendXid(rawzk.XidPing, int32(zktest.OpPing))
	}
	a, err := c.reply(err)
	if err != nil {
		return p.down(c, err)
	}
	before := p.note.events(c)
	if op == zktest.OpCheck && a.Xid == rawzk.XidPing {
		return "no answer" + before
	}
	if op == zktest.OpCheck {
		if _, err := c.reply(nil); err != nil {
			return p.down(c, err)
		}
	}
	answer := p.note.answer(op, a)
	if a.Xid != xid && op != zktest.OpPing {
		answer += fmt.Sprintf(" for xid %d", a.Xid)
	}
	// After these the server closes the connection, sooner or later.
	if op == zktest.OpCloseSession || a.Code == int32(zktest.Unimplemented) || a.Code == int32(zktest.AuthFailed) {
		_, err := c.reply(nil)
		answer += ", " + p.down(c, err)
	}
	return answer + before
}

func (c *client) reply(err error) (rawzk.Answer, error) {
	if err != nil {
		return rawzk.Answer{}, err
	}
	return c.Reply()
}

// down notes the end of a connection, however it came. It waits until the server
// knows, too: a session that is resumed before that may be cut off once more.
func (p *player) down(c *client, err error) string {
	p.t.Helper()
	ended := p.ended(c, err)
	p.forgotten(c.ID)
	return ended
}

// ended is down for a connection whose session has another.
func (p *player) ended(c *client, err error) string {
	p.t.Helper()
	if ne, ok := err.(net.Error); ok && ne.Timeout() || err == nil {
		p.t.Fatalf("%s: no answer and no end: %v", p.addr, err)
	}
	c.up = false
	c.Conn.Close()
	return "closed"
}

func (p *player) do(name string, c *client, what verb, rest []any) string {
	switch {
	case what == open && !c.up:
		p.former = append(p.former, c)
		p.open(name)
		return "opened"
	case what == resume:
		next := &client{Client: c.Resume(p.dial()), up: true}
		id := c.ID
		if err := next.Hello(sessionTimeout); err != nil {
			return p.down(next, err)
		}
		next.Xid = c.Xid
		p.clients[name] = next
		old := ""
		if c.up {
			_, err := c.reply(nil)
			old = ", the old connection " + p.ended(c, err)
		}
		if next.ID != id {
			_, err := next.reply(nil)
			return fmt.Sprintf("session %d, timeout %d, ", next.ID, next.Timeout) + p.down(next, err) + old
		}
		return fmt.Sprintf("resumed, timeout %d", next.Timeout) + old
	case !c.up:
		return "is not connected"
	case what == drop:
		c.Conn.Close()
		c.up = false
		p.forgotten(c.ID)
		return "dropped"
	case what == xid:
		return p.request(c, int32(rest[0].(int)), rest[1].(zktest.Op), rest[2:])
	case what == atOnce:
		return p.atOnce(c, rest)
	case what == send:
		c.Conn.Write(rest[0].([]byte))
		_, err := c.reply(nil)
		return p.down(c, err)
	}
	return "nothing to do"
}

// atOnce sends requests in one piece and notes the answers as they come, with the
// events between them.
func (p *player) atOnce(c *client, requests []any) string {
	var frames []byte
	for i, r := range requests {
		e := jute.NewFrame()
		e.Fields(c.Xid+1+int32(i), int32(r.([]any)[0].(zktest.Op)))
		e.Fields(p.fields(r.([]any)[1:])...)
		frames = append(frames, e.Sealed()...)
	}
	if _, err := c.Conn.Write(frames); err != nil {
		return p.down(c, err)
	}
	var b strings.Builder
	for _, r := range requests {
		c.Xid++
		a, err := c.reply(nil)
		if err != nil {
			return b.String() + p.down(c, err)
		}
		b.WriteString(p.note.events(c) + " | " + p.note.answer(r.([]any)[0].(zktest.Op), a))
		if a.Xid != c.Xid {
			fmt.Fprintf(&b, " for xid %d", a.Xid)
		}
	}
	return b.String()
}

// forgotten waits until no connection of a session is left.
func (p *player) forgotten(id int64) {
	p.t.Helper()
	for {
		nc := p.dial()
		io.WriteString(nc, "cons")
		answer, err := io.ReadAll(nc)
		nc.Close()
		if err != nil {
			p.t.Fatalf("%s: cons: %v", p.addr, err)
		}
		if !strings.Contains(string(answer), fmt.Sprintf("sid=%#x,", uint64(id))) {
			return
		}
	}
}

// events asks every client for what has come in. A ping is answered after the
// events that were under way.
func (p *player) events() string {
	var b strings.Builder
	for _, name := range p.names {
		c := p.clients[name]
		if !c.up {
			continue
		}
		a, err := c.reply(c.SendXid(rawzk.XidPing, int32(zktest.OpPing)))
		if err != nil {
			fmt.Fprintf(&b, "; %s: %s", name, p.down(c, err))
			continue
		}
		fmt.Fprintf(&b, "; %s at %s%s", name, p.note.zxid(a.Zxid), p.note.events(c))
	}
	return b.String()
}

// walk writes down everything at and below a path.
func (p *player) walk(path string) {
	c := p.clients["observer"]
	ask := func(op zktest.Op, more ...any) rawzk.Answer {
		a, err := c.Call(int32(op), append([]any{p.path(path)}, more...)...)
		if err != nil {
			p.t.Fatalf("%s: %v", p.addr, err)
		}
		return a
	}
	p.record = append(p.record,
		path+" exists: "+p.note.answer(zktest.OpExists, ask(zktest.OpExists, false)),
		path+" data: "+p.note.answer(zktest.OpGetData, ask(zktest.OpGetData, false)),
		path+" ACL: "+p.note.answer(zktest.OpGetACL, ask(zktest.OpGetACL)))
	a := ask(zktest.OpGetChildren2, false)
	if a.Code != 0 {
		return
	}
	names := a.Strings()
	p.record = append(p.record, fmt.Sprintf("%s children: %q", path, names))
	slices.Sort(names)
	for _, name := range names {
		p.walk(path + "/" + name)
	}
}

// end closes a client's session, so that it doesn't expire during a later script:
// that would take a zxid.
func (p *player) end(c *client) {
	if !c.up {
		next := c.Resume(p.dial())
		defer next.Conn.Close()
		if err := next.Hello(sessionTimeout); err != nil || next.ID == 0 {
			return
		}
		c.Client = next
	}
	if _, err := c.Call(int32(zktest.OpCloseSession)); err != nil {
		p.t.Fatalf("%s: closing a session: %v", p.addr, err)
	}
}

func (p *player) hangUp() {
	for _, c := range p.clients {
		c.Conn.Close()
	}
}

func (p *player) path(s string) string {
	if rest, ok := strings.CutPrefix(s, "~"); ok {
		return p.root + rest
	}
	return s
}

// fields puts the script's directory and zxids in.
func (p *player) fields(fields []any) []any {
	out := make([]any, len(fields))
	for i, f := range fields {
		switch f := f.(type) {
		case string:
			out[i] = p.path(f)
		case []string:
			paths := make([]string, len(f))
			for j := range f {
				paths[j] = p.path(f[j])
			}
			out[i] = paths
		case []jute.ACL:
			list := slices.Clone(f)
			for j := range list {
				list[j].ID = strings.ReplaceAll(list[j].ID, clientIP, p.note.ip)
			}
			out[i] = list
		case since:
			out[i] = p.note.base + int64(f)
		case []any:
			out[i] = p.fields(f)
		default:
			out[i] = f
		}
	}
	return out
}

var _ fataler = testing.TB(nil)
