// Package cost measures what locks cost in units that do not depend on the
// machine: requests, bytes and wake-ups for each hand-over.
package cost

import (
	"context"
	"encoding/binary"
	"maps"
	"net"
	"sync"
	"time"
)

// Count is what went over the connections of a [Meter].
type Count struct {
	Requests  int64         // pings apart
	ByOp      map[int32]int // the same by ZooKeeper's operation code
	BytesIn   int64         // received from the server
	BytesOut  int64
	WakeUps   int64 // watch events received
	BytesPing int64 // of which pings and their answers, both ways
}

func (c Count) plus(d Count) Count {
	by := maps.Clone(c.ByOp)
	if by == nil {
		by = make(map[int32]int)
	}
	for op, n := range d.ByOp {
		by[op] += n
	}
	return Count{
		Requests:  c.Requests + d.Requests,
		ByOp:      by,
		BytesIn:   c.BytesIn + d.BytesIn,
		BytesOut:  c.BytesOut + d.BytesOut,
		WakeUps:   c.WakeUps + d.WakeUps,
		BytesPing: c.BytesPing + d.BytesPing,
	}
}

// Operation codes that matter here.
const (
	OpChildren  = 8
	OpChildren2 = 12
	opGetData   = 4
	opPing      = 11
)

// A Meter counts what clients send and receive on connections that it dials.
type Meter struct {
	mu    sync.Mutex
	count Count
}

// Dial connects as net.Dialer does.
func (m *Meter) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &conn{
		Conn: c,
		out:  frames{each: m.request},
		in:   frames{each: m.reply},
	}, nil
}

// DialTimeout is Dial in the shape that go-zookeeper wants.
func (m *Meter) DialTimeout(network, addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return m.Dial(ctx, network, addr)
}

// Take returns what was counted since the last Take.
func (m *Meter) Take() Count {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.count
	m.count = Count{}
	return c
}

func (m *Meter) request(head []byte, size int64) {
	op := int32(binary.BigEndian.Uint32(head[4:]))
	m.mu.Lock()
	defer m.mu.Unlock()
	if op == opPing {
		m.count.BytesPing += size
		return
	}
	m.count.Requests++
	m.count.BytesOut += size
	if m.count.ByOp == nil {
		m.count.ByOp = make(map[int32]int)
	}
	m.count.ByOp[op]++
}

func (m *Meter) reply(head []byte, size int64) {
	xid := int32(binary.BigEndian.Uint32(head))
	m.mu.Lock()
	defer m.mu.Unlock()
	switch xid {
	case -2:
		m.count.BytesPing += size
		return
	case -1:
		m.count.WakeUps++
	}
	m.count.BytesIn += size
}

type conn struct {
	net.Conn
	in, out frames
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.take(p[:n])
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.out.take(p[:n])
	return n, err
}

// frames cuts a stream into frames and reports the first bytes and the size of
// each but the first, which belongs to the handshake.
type frames struct {
	each  func(head []byte, size int64)
	head  []byte // length, and eight bytes of the body
	left  int64  // of the body, beyond head
	count int
}

func (f *frames) take(p []byte) {
	for len(p) > 0 {
		if f.left > 0 {
			n := min(f.left, int64(len(p)))
			f.left -= n
			p = p[n:]
			continue
		}
		n := min(12-len(f.head), len(p))
		f.head = append(f.head, p[:n]...)
		p = p[n:]
		if len(f.head) == 12 {
			size := int64(binary.BigEndian.Uint32(f.head)) + 4
			if f.count > 0 {
				f.each(f.head[4:], size)
			}
			f.count++
			f.left = size - 12
			f.head = f.head[:0]
		}
	}
}
