// Package rawzk is a ZooKeeper client for tests of servers. It sends what it is
// told to, frame by frame, and does nothing by itself: no pings, no new
// connections, no watches set anew.
package rawzk

import (
	"fmt"
	"net"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

// The xids that a server uses for what isn't an answer like any other.
const (
	XidEvent int32 = -1
	XidPing  int32 = -2
)

const opPing = 11

// Client is one connection. Its methods return an error if the connection
// fails, and never for an error code. It is for one goroutine.
type Client struct {
	Conn     net.Conn
	ID       int64 // of the session: what the handshake asks for, then what it was answered
	Password []byte
	Timeout  int32 // as answered, in milliseconds
	Xid      int32 // of the last request
	Zxid     int64 // the last that was seen
	Events   []Event
}

// Event is a watch event.
type Event struct {
	Zxid        int64
	Type, State int32
	Path        string
}

// Answer is a reply, or an event, up to its header; the Decoder has the rest.
type Answer struct {
	Xid  int32
	Zxid int64
	Code int32
	*jute.Decoder
}

// New returns a client that asks for a session of its own.
func New(nc net.Conn) *Client { return &Client{Conn: nc, Password: make([]byte, 16)} }

// Resume returns a client that asks for c's session.
func (c *Client) Resume(nc net.Conn) *Client {
	return &Client{Conn: nc, ID: c.ID, Password: c.Password, Zxid: c.Zxid}
}

// SendHello sends the request of the handshake, as clients without a read-only
// mode do.
func (c *Client) SendHello(ms int32) error {
	e := jute.NewFrame()
	e.Fields(0, c.Zxid, ms, c.ID, c.Password)
	_, err := c.Conn.Write(e.Sealed())
	return err
}

// Hello does the handshake and takes over what is answered: the ID 0 if the
// session is gone.
func (c *Client) Hello(ms int32) error {
	if err := c.SendHello(ms); err != nil {
		return err
	}
	frame, err := jute.ReadFrame(c.Conn)
	if err != nil {
		return err
	}
	d := &jute.Decoder{Buf: frame}
	_, c.Timeout, c.ID, c.Password = d.Int32(), d.Int32(), d.Int64(), d.Bytes()
	return d.Err
}

// Send sends a request with the next xid.
func (c *Client) Send(op int32, fields ...any) error {
	c.Xid++
	return c.SendXid(c.Xid, op, fields...)
}

// SendXid sends a request.
func (c *Client) SendXid(xid, op int32, fields ...any) error {
	e := jute.NewFrame()
	e.Fields(xid, op)
	e.Fields(fields...)
	_, err := c.Conn.Write(e.Sealed())
	return err
}

// Next reads one frame. An event is added to Events, too.
func (c *Client) Next() (Answer, error) {
	frame, err := jute.ReadFrame(c.Conn)
	if err != nil {
		return Answer{}, err
	}
	d := &jute.Decoder{Buf: frame}
	a := Answer{Xid: d.Int32(), Zxid: d.Int64(), Code: d.Int32(), Decoder: d}
	if a.Xid == XidEvent {
		c.Events = append(c.Events, Event{Zxid: a.Zxid, Type: d.Int32(), State: d.Int32(), Path: d.Text()})
	} else if a.Zxid > 0 {
		c.Zxid = a.Zxid
	}
	return a, d.Err
}

// Reply reads up to the next reply.
func (c *Client) Reply() (Answer, error) {
	for {
		if a, err := c.Next(); err != nil || a.Xid != XidEvent {
			return a, err
		}
	}
}

// Call sends a request and reads up to its reply.
func (c *Client) Call(op int32, fields ...any) (Answer, error) {
	if err := c.Send(op, fields...); err != nil {
		return Answer{}, err
	}
	a, err := c.Reply()
	if err == nil && a.Xid != c.Xid && (op != opPing || a.Xid != XidPing) {
		err = fmt.Errorf("rawzk: the answer to %d came for %d", c.Xid, a.Xid)
	}
	return a, err
}
