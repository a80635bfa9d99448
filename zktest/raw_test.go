package zktest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// rawClient speaks the protocol frame by frame, and does nothing by itself: no
// pings, no reconnects. Its methods fail the test if the connection does.
type rawClient struct {
	t        testing.TB
	nc       net.Conn
	id       int64
	timeout  int32
	password []byte
	xid      int32
	zxid     int64
	events   []string
}

// answer is a reply, or an event.
type answer struct {
	xid  int32
	zxid int64
	code Code
	*decoder
}

func rawDial(t testing.TB, s *Server) *rawClient {
	t.Helper()
	nc, err := s.Dial(context.Background(), "tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return rawOver(t, nc)
}

func rawOver(t testing.TB, nc net.Conn) *rawClient {
	t.Cleanup(func() { nc.Close() })
	return &rawClient{t: t, nc: nc, password: make([]byte, 16)}
}

// rawSession dials and opens a session.
func rawSession(t testing.TB, s *Server) *rawClient {
	t.Helper()
	c := rawDial(t, s)
	c.hello(10_000)
	if c.id == 0 {
		t.Fatal("no session")
	}
	return c
}

func (c *rawClient) sendHello(ms int32) {
	c.t.Helper()
	e := &encoder{buf: make([]byte, 4)}
	e.int32(0)
	e.int64(c.zxid)
	e.int32(ms)
	e.int64(c.id)
	e.bytes(c.password)
	if _, err := c.nc.Write(e.sealed()); err != nil {
		c.t.Fatal(err)
	}
}

// hello does the handshake for c.id and takes over what is answered.
func (c *rawClient) hello(ms int32) {
	c.t.Helper()
	c.sendHello(ms)
	frame, err := readFrame(c.nc)
	if err != nil {
		c.t.Fatal("handshake: ", err)
	}
	d := &decoder{buf: frame}
	_, c.timeout, c.id, c.password = d.int32(), d.int32(), d.int64(), d.bytes()
	if d.err != nil {
		c.t.Fatal(d.err)
	}
}

// resume continues the session on a new connection.
func (c *rawClient) resume(s *Server) *rawClient {
	c.t.Helper()
	next := rawDial(c.t, s)
	next.id, next.password, next.zxid = c.id, c.password, c.zxid
	next.hello(c.timeout)
	return next
}

func (c *rawClient) send(op Op, fields ...any) {
	c.t.Helper()
	c.xid++
	c.sendXid(c.xid, op, fields...)
}

func (c *rawClient) sendXid(xid int32, op Op, fields ...any) {
	c.t.Helper()
	e := &encoder{buf: make([]byte, 4)}
	e.int32(xid)
	e.int32(int32(op))
	encodeFields(e, fields)
	if _, err := c.nc.Write(e.sealed()); err != nil {
		c.t.Fatal(err)
	}
}

func encodeFields(e *encoder, fields []any) {
	for _, f := range fields {
		switch f := f.(type) {
		case bool:
			e.bool(f)
		case int:
			e.int32(int32(f))
		case int32:
			e.int32(f)
		case int64:
			e.int64(f)
		case string:
			e.string(f)
		case []byte:
			e.bytes(f)
		case []string:
			e.strings(f)
		case []aclEntry:
			e.acls(f)
		case []any:
			encodeFields(e, f)
		default:
			panic(fmt.Sprintf("no encoding for %T", f))
		}
	}
}

// next reads one frame.
func (c *rawClient) next() (answer, error) {
	frame, err := readFrame(c.nc)
	if err != nil {
		return answer{}, err
	}
	d := &decoder{buf: frame}
	a := answer{xid: d.int32(), zxid: d.int64(), code: Code(d.int32()), decoder: d}
	if a.xid == xidEvent {
		typ, state, path := d.int32(), d.int32(), d.string()
		if state != stateConnected || d.err != nil {
			c.t.Errorf("odd event: state %d, %v", state, d.err)
		}
		c.events = append(c.events, fmt.Sprintf("%s %s", eventName(typ), path))
	} else if a.zxid > 0 {
		c.zxid = a.zxid
	}
	return a, nil
}

func eventName(typ int32) string {
	return map[int32]string{1: "created", 2: "deleted", 3: "changed", 4: "children"}[typ]
}

// reply reads up to the next reply, gathering the events before it.
func (c *rawClient) reply() answer {
	c.t.Helper()
	for {
		a, err := c.next()
		if err != nil {
			c.t.Fatal(err)
		}
		if a.xid != xidEvent {
			return a
		}
	}
}

// call sends one request and returns its answer.
func (c *rawClient) call(op Op, fields ...any) answer {
	c.t.Helper()
	c.send(op, fields...)
	a := c.reply()
	if a.xid != c.xid && (op != OpPing || a.xid != xidPing) {
		c.t.Fatalf("%v: answer to %d came for %d", op, c.xid, a.xid)
	}
	return a
}

// try calls and returns the code only.
func (c *rawClient) try(op Op, fields ...any) Code {
	c.t.Helper()
	return c.call(op, fields...).code
}

// ok calls and fails the test on an error code.
func (c *rawClient) ok(op Op, fields ...any) answer {
	c.t.Helper()
	a := c.call(op, fields...)
	if a.code != codeOK {
		c.t.Fatalf("%v %v: %v", op, fields, a.code)
	}
	return a
}

func (c *rawClient) create(path string, mode int) string {
	c.t.Helper()
	return c.ok(OpCreate, path, []byte{}, openACL, mode).string()
}

func (c *rawClient) stat(path string) Stat {
	c.t.Helper()
	return c.ok(OpExists, path, false).stat()
}

func (d *decoder) stat() Stat {
	return Stat{
		Czxid: d.int64(), Mzxid: d.int64(), Ctime: d.int64(), Mtime: d.int64(),
		Version: d.int32(), Cversion: d.int32(), Aversion: d.int32(),
		EphemeralOwner: d.int64(), DataLength: d.int32(), NumChildren: d.int32(), Pzxid: d.int64(),
	}
}

// multi sends the parts and returns the codes of the results.
func (c *rawClient) multi(parts ...[]any) (answer, []string) {
	c.t.Helper()
	var fields []any
	for _, p := range parts {
		fields = append(fields, int32(p[0].(Op)), false, -1, p[1:])
	}
	a := c.call(OpMulti, append(fields, -1, true, -1)...)
	var results []string
	for a.code == codeOK {
		op, done, code := Op(a.int32()), a.bool(), Code(a.int32())
		if done {
			if op != opError || code != -1 {
				c.t.Errorf("closing header: %v %d", op, code)
			}
			break
		}
		switch op {
		case opError:
			if body := Code(a.int32()); body != code {
				c.t.Errorf("header says %d, body %d", code, body)
			}
			results = append(results, fmt.Sprint(int32(code)))
		case OpCreate:
			results = append(results, "create "+a.string())
		case OpCreate2:
			results = append(results, fmt.Sprintf("create2 %s v%d", a.string(), a.stat().Version))
		case OpSetData:
			results = append(results, fmt.Sprintf("set v%d", a.stat().Version))
		default:
			results = append(results, op.String())
		}
		if a.err != nil {
			c.t.Fatal(a.err)
		}
	}
	return a, results
}

// silent makes sure that nothing comes from the server, not even an end.
func (c *rawClient) silent() {
	c.t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(2 * time.Second))
	if frame, err := readFrame(c.nc); !os.IsTimeout(err) {
		c.t.Errorf("expected silence, got a frame of %d bytes, error %v", len(frame), err)
	}
}

// closed waits for the server to end the connection and says how.
func (c *rawClient) closed() string {
	c.t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(2 * time.Second))
	for {
		_, err := c.next()
		switch {
		case err == nil:
			continue
		case err == io.EOF:
			return "closed"
		case os.IsTimeout(err):
			return "open"
		default:
			return "reset"
		}
	}
}
