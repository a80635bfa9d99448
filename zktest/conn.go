package zktest

import (
	"bufio"
	"errors"
	"net"
	"time"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

// conn is one connection of a client. Two goroutines serve it: one reads and
// carries out requests in order, one writes what is in the queue.
type conn struct {
	s    *Server
	nc   net.Conn
	gone chan struct{} // closed when the connection is given up

	serial int64 // the order in which connections were made
	since  time.Time

	// The server's mutex guards the rest.
	sess     *session // nil before the handshake
	ids      []identity
	detached bool      // no longer speaks for its session: what still arrives is ignored
	hole     Direction // which bytes vanish
	cutOff   *lag      // the state of a follower that lost its leader
	stuck    bool      // a request waits for that leader
	queue    []outgoing
	wake     chan struct{} // holds one token if the queue has grown

	received, sent int // frames
	lastOp         Op
	lastXid        int32
}

// outgoing is a frame to write, or a way to end the connection.
type outgoing struct {
	frame []byte
	due   time.Time
	end   ending
}

type ending int

const (
	goOn ending = iota
	finish
	abort
)

// serve takes over a new connection. Called with the server locked.
func (s *Server) serve(nc net.Conn) {
	s.accepted++
	c := &conn{s: s, nc: nc, serial: s.accepted, since: time.Now(), gone: make(chan struct{}), wake: make(chan struct{}, 1)}
	c.ids = []identity{{"ip", peerIP(nc)}}
	s.conns[c] = struct{}{}
	s.wg.Go(c.readLoop)
	s.wg.Go(c.writeLoop)
}

func peerIP(nc net.Conn) string {
	if tcp, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return "127.0.0.1"
}

func (c *conn) readLoop() {
	defer c.s.locked(c.drop)
	r := bufio.NewReader(c.nc)
	first, err := c.readFirst(r)
	if err != nil || !c.handshake(first) {
		return
	}
	for {
		frame, err := jute.ReadFrame(r)
		if err != nil {
			if errors.Is(err, jute.ErrFrameLength) {
				c.s.log.Debug("connection dropped", "error", err)
			}
			return
		}
		if !c.handle(frame) {
			return
		}
	}
}

func (c *conn) writeLoop() {
	defer c.s.locked(c.drop)
	for {
		out, ok := c.next()
		if !ok {
			return
		}
		if out.end != goOn {
			if out.end == abort {
				reset(c.nc)
			}
			return
		}
		if _, err := c.nc.Write(out.frame); err != nil {
			return
		}
	}
}

// next waits for something to write whose time has come. What falls into a
// black hole is skipped.
func (c *conn) next() (outgoing, bool) {
	for {
		c.s.mu.Lock()
		var wait time.Duration
		if len(c.queue) > 0 {
			out := c.queue[0]
			if wait = time.Until(out.due); out.due.IsZero() || wait <= 0 {
				c.queue = c.queue[1:]
				vanishes := c.hole.covers(ToClient)
				if !vanishes {
					c.s.tally(c.sessionID(), func(n *Counts) { n.BytesOut += int64(len(out.frame)) })
				}
				c.s.mu.Unlock()
				if vanishes {
					continue
				}
				return out, true
			}
		}
		c.s.mu.Unlock()

		var due <-chan time.Time
		if wait > 0 {
			due = time.After(wait)
		}
		select {
		case <-c.wake:
		case <-due:
		case <-c.gone:
			return outgoing{}, false
		}
	}
}

// The methods below are called with the server locked.

func (c *conn) push(out outgoing) {
	if d := c.s.faults.delay; d > 0 {
		out.due = time.Now().Add(d)
	}
	c.queue = append(c.queue, out)
	if out.end == goOn {
		c.sent++
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// newReply starts a frame with a reply header.
func newReply(xid int32, zxid int64, code Code) *jute.Encoder {
	e := jute.NewFrame()
	e.Fields(xid, zxid, int32(code))
	return e
}

// sessionID is 0 before the handshake.
func (c *conn) sessionID() int64 {
	if c.sess == nil {
		return 0
	}
	return c.sess.id
}

// noZxid is the zxid of an event that no change stands behind.
const noZxid = -1

// event queues a watch event.
func (c *conn) event(kind changeKind, path string, zxid int64) {
	if !c.s.opts.eventZxids {
		zxid = noZxid
	}
	e := newReply(xidEvent, zxid, codeOK)
	e.Int32(int32(kind))
	e.Int32(stateConnected)
	e.Text(path)
	c.s.tally(c.sessionID(), func(n *Counts) { n.Events++ })
	c.push(outgoing{frame: e.Sealed()})
}

// detach ends the connection's part in its session.
func (c *conn) detach() {
	c.detached = true
	c.s.watches.drop(c)
	if c.sess != nil && c.sess.conn == c {
		c.sess.conn = nil
	}
}

// hangUp closes the connection after what is queued was written.
func (c *conn) hangUp() {
	c.detach()
	c.push(outgoing{end: finish})
}

// abortAfter resets the connection after what is queued was written.
func (c *conn) abortAfter() {
	c.detach()
	c.push(outgoing{end: abort})
}

// cut resets the connection now.
func (c *conn) cut() {
	c.detach()
	reset(c.nc)
	c.drop()
}

// drop gives the connection up. The goroutines end by themselves.
func (c *conn) drop() {
	if _, there := c.s.conns[c]; !there {
		return
	}
	delete(c.s.conns, c)
	c.detach()
	close(c.gone)
	c.nc.Close()
	c.s.stirred()
}

// reset closes a connection without the usual farewell.
func reset(nc net.Conn) {
	switch nc := nc.(type) {
	case *pipeEnd:
		nc.reset()
	case *net.TCPConn:
		nc.SetLinger(0)
		nc.Close()
	}
}

// lag returns the state that the connection's view of the tree is stuck at, or
// nil if it sees the truth.
func (c *conn) lag() *lag {
	if c.cutOff != nil {
		return c.cutOff
	}
	if c.sess != nil {
		return c.sess.lag
	}
	return nil
}

// view returns the tree that the connection reads.
func (c *conn) view() *tree {
	if l := c.lag(); l != nil {
		return l.tree
	}
	return c.s.tree
}
