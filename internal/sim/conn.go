package sim

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A conn is one connection, as the client has it. What was written before it is
// closed still arrives, as with a socket.
type conn struct {
	net.Conn // to the server
	l        *link
	gone     chan struct{} // closed when the client has no more part in it
	wake     chan struct{}
	buf      []byte // of fetch

	mu       sync.Mutex
	over     bool
	cut      bool
	asked    bool // the connect request was sent
	out      []chunk
	in       []chunk
	deadline time.Time
	greeted  bool // the answer to the connect request has come
	muted    bool // something on the way to the client was lost
}

type chunk struct {
	b   []byte
	due time.Time
	err error
}

func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return 0, net.ErrClosed
	}
	b = bytes.Clone(b)
	if !c.asked && len(b) >= 20 { // the timeout asked for, after length, version and zxid
		binary.BigEndian.PutUint32(b[16:], uint32(c.l.timeout.Milliseconds()))
	}
	c.asked = true
	c.out = append(c.out, chunk{b: b, due: c.l.due()})
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return len(b), nil
}

// pump carries what was written to the server.
func (c *conn) pump() {
	defer c.Conn.Close()
	lost := false
	for {
		c.mu.Lock()
		if c.cut {
			c.mu.Unlock()
			return
		}
		var next chunk
		if len(c.out) > 0 {
			next, c.out = c.out[0], c.out[1:]
		}
		over := c.over
		c.mu.Unlock()
		if next.b == nil {
			if over {
				return
			}
			select {
			case <-c.wake:
			case <-c.gone:
			}
			continue
		}
		for {
			at, deaf := c.l.arrives(up, next.due)
			if sleepUntil(at, nil); time.Now().Before(at) {
				continue
			}
			if again, _ := c.l.arrives(up, next.due); time.Now().Before(again) {
				continue
			}
			lost = lost || deaf
			break
		}
		if !lost { // once something is lost, so is what comes after
			c.Conn.Write(next.b)
		}
	}
}

func (c *conn) Read(p []byte) (int, error) {
	for {
		c.mu.Lock()
		if c.over {
			c.mu.Unlock()
			return 0, net.ErrClosed
		}
		deadline := c.deadline
		if len(c.in) == 0 {
			c.mu.Unlock()
			c.fetch()
			continue
		}
		at, deaf := c.l.arrives(down, c.in[0].due)
		c.muted = c.muted || deaf && !time.Now().Before(at)
		if c.muted {
			at = time.Now().Add(24 * time.Hour)
		}
		if !time.Now().Before(at) {
			defer c.mu.Unlock()
			if c.in[0].err != nil {
				return 0, c.in[0].err
			}
			n := copy(p, c.in[0].b)
			if c.in[0].b = c.in[0].b[n:]; len(c.in[0].b) == 0 {
				c.in = c.in[1:]
			}
			return n, nil
		}
		c.mu.Unlock()
		if !deadline.IsZero() && !deadline.After(time.Now()) {
			return 0, os.ErrDeadlineExceeded
		}
		if !deadline.IsZero() && deadline.Before(at) {
			at = deadline
		}
		sleepUntil(at, c.gone)
	}
}

// fetch waits for something from the server.
func (c *conn) fetch() {
	if c.buf == nil {
		c.buf = make([]byte, 4096)
	}
	n, err := c.Conn.Read(c.buf)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 {
		b := bytes.Clone(c.buf[:n])
		if !c.greeted && n >= 12 { // the timeout granted, after length and version
			told := float64(binary.BigEndian.Uint32(b[8:])) * c.l.rate
			binary.BigEndian.PutUint32(b[8:], uint32(told))
		}
		c.greeted = true
		due := c.l.due()
		if len(c.in) > 0 {
			due = later(due, c.in[len(c.in)-1].due)
		}
		c.in = append(c.in, chunk{b: b, due: due})
	}
	if err != nil && !c.over {
		if err != io.EOF && os.IsTimeout(err) {
			c.in = append(c.in, chunk{err: err})
		} else {
			c.in = append(c.in, chunk{err: err, due: c.l.due()})
		}
	}
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	if len(c.in) == 1 && os.IsTimeout(c.in[0].err) {
		c.in = nil
	}
	if c.over {
		return net.ErrClosed
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) SetWriteDeadline(time.Time) error { return nil } // Write does not wait
func (c *conn) SetDeadline(t time.Time) error    { return c.SetReadDeadline(t) }

// Close ends the client's part.
func (c *conn) Close() error {
	c.l.mu.Lock()
	delete(c.l.conns, c)
	c.l.mu.Unlock()
	c.end(false)
	return nil
}

// reset ends both parts at once.
func (c *conn) reset() {
	c.end(true)
	c.Conn.Close()
}

func (c *conn) end(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = c.cut || cut
	if !c.over {
		c.over = true
		close(c.gone)
		c.Conn.SetReadDeadline(time.Unix(1, 0)) // whoever reads must know
	}
}
