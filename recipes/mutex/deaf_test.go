package mutex_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
)

// A deafConn loses watch events while deaf is set.
type deafConn struct {
	net.Conn
	in   *bufio.Reader
	deaf *atomic.Bool
	out  []byte
}

func (c *deafConn) Read(p []byte) (int, error) {
	for len(c.out) == 0 {
		head, err := c.in.Peek(4)
		if err != nil {
			return 0, err
		}
		frame := make([]byte, 4+binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(c.in, frame); err != nil {
			return 0, err
		}
		const event = 0xffffffff // its xid, -1
		if len(frame) >= 8 && binary.BigEndian.Uint32(frame[4:]) == event && c.deaf.Load() {
			continue
		}
		c.out = frame
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

// case 23: an event that got lost must not mean a wait without end.
func TestEventIsLost(t *testing.T) {
	for _, dies := range []bool{false, true} {
		locktest.Run(t, func(e *locktest.Env) {
			var deaf atomic.Bool
			s := e.Open(func(cfg *session.Config) {
				cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					c, err := e.Dial(ctx, network, addr)
					if err != nil {
						return nil, err
					}
					return &deafConn{Conn: c, in: bufio.NewReader(c), deaf: &deaf}, nil
				}
			})
			g := e.Lock(e.New())
			a := e.Start(e.Mutex(s).Lock)
			e.Queued(2)
			time.Sleep(5 * time.Minute) // the look now and then finds it there
			deaf.Store(true)
			if dies {
				e.Delete(nodeOf(e, g))
			} else {
				e.Release(g)
			}
			time.Sleep(time.Second)
			deaf.Store(false)
			e.Release(a.Grant(2 * time.Minute))
			e.Empty()
		})
	}
}
