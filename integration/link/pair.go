package link

import (
	"net"
	"sync"
)

// pair is one connection through the link: the client's, and ours to the server.
type pair struct {
	client *net.TCPConn

	mu     sync.Mutex
	server *net.TCPConn  // nil until made
	gone   chan struct{} // closed by reset
	over   bool
	trap   *Trap // for the next answer
}

// reset breaks both connections, so that either side sees an error rather than
// an orderly end.
func (p *pair) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.over = true
	close(p.gone)
	for _, c := range []*net.TCPConn{p.client, p.server} {
		if c != nil {
			c.SetLinger(0)
			c.Close()
		}
	}
}

// dial connects to the server; false if that failed or the pair is gone.
func (p *pair) dial(target string) bool {
	c, err := net.Dial("tcp", target)
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		c.Close()
		return false
	}
	p.server = c.(*net.TCPConn)
	return true
}

// forward carries bytes both ways until both directions have ended or one broke.
func (p *pair) forward(l *Link, target string) {
	defer p.reset() // does nothing to what has been closed in order
	// nothing of a new connection reaches the server through a hole
	if !l.up.pass(p.gone, func() error { return nil }) || !p.dial(target) {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.pump(&l.up, p.client, p.server, func(b []byte) bool { return p.request(l.caught(b)) }) })
	wg.Go(func() { p.pump(&l.down, p.server, p.client, func([]byte) bool { return p.answer() }) })
	wg.Wait()
}

// request does to a request what the trap that it went into wants, and reports
// whether it goes on. t may be nil.
func (p *pair) request(t *Trap) bool {
	switch {
	case t == nil:
		return true
	case t.answer:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.trap = t
		return true
	default:
		return t.hold(p.gone)
	}
}

// answer does the same to what the server says.
func (p *pair) answer() bool {
	p.mu.Lock()
	t := p.trap
	p.trap = nil
	p.mu.Unlock()
	switch {
	case t == nil || t.released():
		return true
	case t.lose:
		p.reset()
		close(t.sprung)
		return false
	default:
		return t.hold(p.gone)
	}
}

// pump carries bytes from src to dst as long as the gate and check let it, and then
// the end of the stream.
func (p *pair) pump(g *gate, src, dst *net.TCPConn, check func([]byte) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && !(check(buf[:n]) && g.pass(p.gone, func() error { _, err := dst.Write(buf[:n]); return err })) {
			p.reset()
			return
		}
		if err != nil {
			if !g.pass(p.gone, dst.CloseWrite) {
				p.reset()
			}
			return
		}
	}
}
