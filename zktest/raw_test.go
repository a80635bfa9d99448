package zktest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/internal/jute"
	"github.com/lockkeeper/lockkeeper/internal/rawzk"
)

// rawClient is a client whose methods fail the test if the connection does.
type rawClient struct {
	t testing.TB
	*rawzk.Client
	events []string
}

// answer is a reply, or an event.
type answer struct {
	xid  int32
	zxid int64
	code Code
	*jute.Decoder
}

func (a answer) stat() Stat { return Stat(a.Stat()) }

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
	return &rawClient{t: t, Client: rawzk.New(nc)}
}

// rawSession dials and opens a session.
func rawSession(t testing.TB, s *Server) *rawClient {
	t.Helper()
	c := rawDial(t, s)
	c.hello(10_000)
	if c.ID == 0 {
		t.Fatal("no session")
	}
	return c
}

func (c *rawClient) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawClient) sendHello(ms int32) {
	c.t.Helper()
	c.must(c.SendHello(ms))
}

// hello does the handshake and takes over what is answered.
func (c *rawClient) hello(ms int32) {
	c.t.Helper()
	c.must(c.Hello(ms))
}

// resume continues the session on a new connection.
func (c *rawClient) resume(s *Server) *rawClient {
	c.t.Helper()
	next := rawDial(c.t, s)
	next.Client = c.Resume(next.Conn)
	next.hello(c.Timeout)
	return next
}

func (c *rawClient) send(op Op, fields ...any) {
	c.t.Helper()
	c.must(c.Send(int32(op), fields...))
}

func (c *rawClient) sendXid(xid int32, op Op, fields ...any) {
	c.t.Helper()
	c.must(c.SendXid(xid, int32(op), fields...))
}

// next reads one frame.
func (c *rawClient) next() (answer, error) {
	c.Events = nil
	a, err := c.Next()
	for _, ev := range c.Events {
		if ev.State != stateConnected {
			c.t.Errorf("odd event: %+v", ev)
		}
		c.events = append(c.events, fmt.Sprintf("%s %s", eventName(ev.Type), ev.Path))
	}
	return answer{a.Xid, a.Zxid, Code(a.Code), a.Decoder}, err
}

func eventName(typ int32) string {
	return map[int32]string{1: "created", 2: "deleted", 3: "changed", 4: "children"}[typ]
}

// reply reads up to the next reply, gathering the events before it.
func (c *rawClient) reply() answer {
	c.t.Helper()
	for {
		a, err := c.next()
		c.must(err)
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
	if a.xid != c.Xid && (op != OpPing || a.xid != xidPing) {
		c.t.Fatalf("%v: answer to %d came for %d", op, c.Xid, a.xid)
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
	return c.ok(OpCreate, path, []byte{}, openACL, mode).Text()
}

func (c *rawClient) stat(path string) Stat {
	c.t.Helper()
	return c.ok(OpExists, path, false).stat()
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
		op, done, code := Op(a.Int32()), a.Bool(), Code(a.Int32())
		if done {
			if op != opError || code != -1 {
				c.t.Errorf("closing header: %v %d", op, code)
			}
			break
		}
		switch op {
		case opError:
			if body := Code(a.Int32()); body != code {
				c.t.Errorf("header says %d, body %d", code, body)
			}
			results = append(results, fmt.Sprint(int32(code)))
		case OpCreate:
			results = append(results, "create "+a.Text())
		case OpCreate2:
			results = append(results, fmt.Sprintf("create2 %s v%d", a.Text(), a.stat().Version))
		case OpSetData:
			results = append(results, fmt.Sprintf("set v%d", a.stat().Version))
		default:
			results = append(results, op.String())
		}
		if a.Err != nil {
			c.t.Fatal(a.Err)
		}
	}
	return a, results
}

// silent makes sure that nothing comes from the server, not even an end.
func (c *rawClient) silent() {
	c.t.Helper()
	c.Conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	if frame, err := jute.ReadFrame(c.Conn); !os.IsTimeout(err) {
		c.t.Errorf("expected silence, got a frame of %d bytes, error %v", len(frame), err)
	}
}

// closed waits for the server to end the connection and says how.
func (c *rawClient) closed() string {
	c.t.Helper()
	c.Conn.SetReadDeadline(time.Now().Add(2 * time.Second))
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
