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
func (p *pair) forward(l *Link) {
	defer p.reset() // does nothing to what has been closed in order
	// nothing of a new connection reaches the server through a hole
	if !l.up.pass(p.gone, func() error { return nil }) || !p.dial(l.target) {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.pump(&l.up, p.client, p.server) })
	wg.Go(func() { p.pump(&l.down, p.server, p.client) })
	wg.Wait()
}

// pump carries bytes from src to dst as long as the gate lets it, and then the
// end of the stream.
func (p *pair) pump(g *gate, src, dst *net.TCPConn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && !g.pass(p.gone, func() error { _, err := dst.Write(buf[:n]); return err }) {
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
