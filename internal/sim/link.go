package sim

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A direction of a link.
type direction int

const (
	up   direction = iota // to the server
	down                  // to the client
)

// A link is the network between one client and the server. What goes over it takes
// its time, in order; it can be held for a while, lost, or turned away at the door.
// The time that a frame takes is drawn from the link's own dice, so that the order
// in which the clients' frames arrive is the seed's.
//
// It also has the rate of the client's clock. A clock that is slow by a part in
// fifty is the same thing as a session that ends that much earlier than the client
// was told, and that is what the link does: it tells the client a timeout that is
// longer by the rate than the one that the server granted.
type link struct {
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	pumps   *sync.WaitGroup
	rate    float64 // of true time to the client's: more than 1 for a slow clock
	timeout time.Duration

	mu       sync.Mutex
	dice     *rand.Rand
	latency  time.Duration // the mean
	held     [2]time.Time  // nothing arrives before
	deaf     [2]time.Time  // what would arrive before is lost
	refused  time.Time     // new connections until then
	troubled time.Time     // when the last of the client's troubles ends
	conns    map[*conn]struct{}
}

func newLink(w *world, dice *rand.Rand, rate float64, timeout time.Duration) *link {
	return &link{
		dial: w.srv.Dial, pumps: &w.pumps, rate: rate, timeout: timeout, dice: dice,
		latency: usualLatency, conns: make(map[*conn]struct{}),
	}
}

const usualLatency = time.Millisecond

// change sets what is wrong with the link. The trouble is over at until.
func (l *link) change(until time.Time, f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	l.troubled = later(l.troubled, until)
}

// trouble notes that something else is wrong for this client.
func (l *link) trouble(until time.Time) { l.change(until, func() {}) }

// calmSince reports whether nothing has been wrong since t.
func (l *link) calmSince(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.troubled.Before(t)
}

func (l *link) hold(d direction, until time.Time) {
	l.change(until, func() { l.held[d] = later(l.held[d], until) })
}

func (l *link) lose(d direction, until time.Time) {
	l.change(until, func() { l.deaf[d] = later(l.deaf[d], until) })
}

func (l *link) refuse(until time.Time) {
	l.change(until, func() { l.refused = later(l.refused, until) })
}

func (l *link) slow(latency time.Duration, until time.Time) {
	l.change(until, func() { l.latency = latency })
}

// cut resets the connections.
func (l *link) cut() {
	l.mu.Lock()
	conns := l.conns
	l.conns = make(map[*conn]struct{})
	l.troubled = later(l.troubled, time.Now())
	l.mu.Unlock()
	for c := range conns {
		c.reset()
	}
}

// heal ends what is wrong, now.
func (l *link) heal() {
	now := time.Now()
	l.mu.Lock()
	lame := l.deaf[up].After(now) || l.deaf[down].After(now)
	l.held, l.deaf, l.refused, l.latency, l.troubled = [2]time.Time{}, [2]time.Time{}, time.Time{}, usualLatency, now
	l.mu.Unlock()
	if lame {
		l.cut()
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// due draws when something that is sent now arrives, if nothing is wrong.
func (l *link) due() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Add(l.latency/2 + time.Duration(l.dice.Int64N(int64(l.latency))))
}

// arrives returns when that is as things stand, and whether it is lost if it
// arrives now.
func (l *link) arrives(d direction, due time.Time) (at time.Time, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return later(due, l.held[d]), time.Now().Before(l.deaf[d])
}

// Dial connects to the server.
func (l *link) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	for {
		l.mu.Lock()
		at := later(l.held[up], l.held[down])
		l.mu.Unlock()
		if !sleepUntil(at, ctx.Done()) {
			return nil, ctx.Err()
		}
		if at, _ := l.arrives(up, at); !time.Now().Before(at) {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.refused) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	inner, err := l.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, l: l, gone: make(chan struct{}), wake: make(chan struct{}, 1)}
	l.conns[c] = struct{}{}
	l.pumps.Go(c.pump) // ends some time after Close or reset
	return c, nil
}

// sleepUntil reports whether it slept until t.
func sleepUntil(t time.Time, stop <-chan struct{}) bool {
	d := time.Until(t)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}
