// Package link is a network link with faults: a TCP proxy on the loopback
// interface between the clients that are given its address and one server.
// Faults of a single client need a link of its own.
package link

import (
	"net"
	"sync"
	"testing"
)

// Link forwards connections to one server. In the beginning, and after Heal, it
// does nothing but that. Its methods may be called by several goroutines.
//
// What a hole swallows is not lost but late, as on a real network, where TCP
// sends again what was not acknowledged: Heal lets it through, in order, on the
// connections that both sides still want, and also to a server whose client has
// hung up meanwhile.
type Link struct {
	listener net.Listener
	up, down gate // client to server, server to client
	wg       sync.WaitGroup

	mu     sync.Mutex
	target string
	traps  []*Trap
	refuse bool
	closed bool
	pairs  map[*pair]struct{}
}

// New starts a link to the server at target, host:port. It ends with the test.
func New(t testing.TB, target string) *Link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("link: %v", err)
	}
	link := &Link{target: target, listener: l, pairs: make(map[*pair]struct{})}
	link.wg.Go(link.accept)
	t.Cleanup(link.close)
	return link
}

// Addr is the address to give to the client in the server's stead.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Cut breaks the connections that are open now; both sides are told at once.
// New ones are accepted: it is a blip.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut()
}

// Refuse breaks the connections that are open now, and every new one as soon as
// it was made, until Heal.
func (l *Link) Refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse = true
	l.cut()
}

// Hole lets nothing through in either direction until Heal, and tells nobody:
// connections stay open, what is sent vanishes, ends of connections too. A new
// connection is made, as far as the client can see, and nothing comes of it.
// When Hole returns, not one byte more goes through.
func (l *Link) Hole() {
	l.up.shut()
	l.down.shut()
}

// HoleUp is Hole from the client to the server only: what the server still has
// to say goes through.
func (l *Link) HoleUp() { l.up.shut() }

// HoleDown is Hole from the server to the client only: the server carries out
// requests whose answers the client does not get.
func (l *Link) HoleDown() { l.down.shut() }

// Heal ends what Refuse, the holes and the traps began.
func (l *Link) Heal() {
	l.mu.Lock()
	l.refuse = false
	for _, t := range l.traps {
		t.Release()
	}
	l.traps = nil
	l.mu.Unlock()
	l.up.open()
	l.down.open()
}

// Redirect breaks the connections that are open now, and takes new ones to another
// server.
func (l *Link) Redirect(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
	l.cut()
}

func (l *Link) cut() {
	for p := range l.pairs {
		p.reset()
	}
}

func (l *Link) close() {
	l.mu.Lock()
	l.closed = true
	l.listener.Close()
	l.cut()
	l.mu.Unlock()
	l.wg.Wait()
}

func (l *Link) accept() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return
		}
		p := &pair{client: c.(*net.TCPConn), gone: make(chan struct{})}
		l.mu.Lock()
		if l.refuse || l.closed {
			p.reset()
			l.mu.Unlock()
			continue
		}
		target := l.target
		l.pairs[p] = struct{}{}
		l.wg.Go(func() {
			p.forward(l, target)
			l.mu.Lock()
			delete(l.pairs, p)
			l.mu.Unlock()
		})
		l.mu.Unlock()
	}
}
