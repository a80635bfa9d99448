package semaphore_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// deaf is a connection that swallows watch events.
type deaf struct {
	net.Conn
	rest []byte
}

func (d *deaf) Read(b []byte) (int, error) {
	for len(d.rest) == 0 {
		frame := make([]byte, 4, 64)
		if _, err := io.ReadFull(d.Conn, frame); err != nil {
			return 0, err
		}
		frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
		if _, err := io.ReadFull(d.Conn, frame[4:]); err != nil {
			return 0, err
		}
		if int32(binary.BigEndian.Uint32(frame[4:])) != -1 {
			d.rest = frame
		}
	}
	n := copy(b, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// case 23: events that never come make nobody wait for ever: not the first in line,
// when a permit comes back or the size grows, nor the one behind it.
func TestEventsNeverCome(t *testing.T) {
	run(t, func(e env) {
		s := e.Open(func(c *session.Config) {
			c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := e.Dial(ctx, network, addr)
				return &deaf{Conn: conn}, err
			}
		})
		sem, other := e.sem(s, 2), e.fresh(2)
		a, b := e.held(other, 1), e.held(other, 1)
		first := e.take(sem, 1)
		e.contenders(3)
		e.Release(a)
		c := first.Grant(2 * time.Minute)
		second := e.take(sem, 1)
		e.contenders(3)
		e.resize(other, 3)
		d := second.Grant(2 * time.Minute)

		ahead := e.take(other, 2)
		e.contenders(4)
		behind := e.take(sem, 1)
		e.contenders(5)
		e.Release(b)
		e.Release(c)
		g := ahead.Grant(time.Second) // which the one behind does not hear
		e.Release(d)
		h := behind.Grant(3 * time.Minute)
		e.Release(g)
		e.Release(h)
	})
}

// The node is removed after the first in line has looked and before it is admitted.
func TestNodeIsRemovedWhileBeingAdmitted(t *testing.T) {
	run(t, func(e env) {
		sem := e.fresh(2)
		e.Release(e.held(sem, 1))
		arrived, release := e.HoldRequest(zktest.OpMulti, 1)
		a := e.take(sem, 1)
		locktest.Await(e.Env, arrived)
		names := leases(e.Children(locktest.Path))
		e.Delete(locktest.Path + "/" + names[0])
		release()
		g := a.Grant(time.Second)
		if got := leases(e.Children(locktest.Path)); len(got) != 1 || got[0] == names[0] {
			t.Errorf("in the queue: %q, was %q", got, names)
		}
		e.Release(g)
	})
}
