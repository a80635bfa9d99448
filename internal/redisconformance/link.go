package redisconformance

import (
	"bytes"
	"net"
	"sync"
)

// A network is what one client reaches the server by. When it is cut, nothing gets
// through, and nobody is told; when it is healed, everything that was sent meanwhile
// arrives, also what its sender has given up.
type network struct {
	mu     sync.Mutex
	open   chan struct{} // closed while it is not cut
	onStep func()
	pumps  sync.WaitGroup
	conns  map[net.Conn]struct{}
	down   bool
}

func newNetwork() *network {
	n := &network{open: make(chan struct{}), conns: make(map[net.Conn]struct{})}
	close(n.open)
	return n
}

func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.open:
		n.open = make(chan struct{})
	default:
	}
}

func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.open:
	default:
		close(n.open)
	}
}

// pass waits until something may get through.
func (n *network) pass() {
	n.mu.Lock()
	open := n.open
	n.mu.Unlock()
	<-open
}

// step tells of a request.
func (n *network) step() {
	n.mu.Lock()
	f := n.onStep
	n.mu.Unlock()
	if f != nil {
		f()
	}
}

func (n *network) setOnStep(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.onStep = f
}

// join puts the network between a client and its connection to the server.
func (n *network) join(server net.Conn) (net.Conn, error) {
	client, inner := net.Pipe()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		server.Close()
		return nil, net.ErrClosed
	}
	n.conns[inner], n.conns[server] = struct{}{}, struct{}{}
	n.pumps.Go(func() { n.pump(server, inner, true) })
	n.pumps.Go(func() { n.pump(inner, server, false) })
	return client, nil
}

// end closes all connections and waits for what serves them.
func (n *network) end() {
	n.heal()
	n.mu.Lock()
	n.down = true
	for c := range n.conns {
		c.Close()
	}
	n.mu.Unlock()
	n.pumps.Wait()
}

var requests = [][]byte{[]byte("evalsha"), []byte("eval")}

// pump carries what comes from src to dst. It never stops reading, so that its sender
// can't tell that the network is cut.
func (n *network) pump(dst, src net.Conn, request bool) {
	var (
		mu      sync.Mutex
		pending bytes.Buffer
		ended   bool
		more    = make(chan struct{}, 1)
	)
	signal := func() {
		select {
		case more <- struct{}{}:
		default:
		}
	}
	n.pumps.Go(func() {
		defer func() { mu.Lock(); ended = true; mu.Unlock(); signal() }()
		buf := make([]byte, 16<<10)
		for {
			k, err := src.Read(buf)
			mu.Lock()
			pending.Write(buf[:k])
			mu.Unlock()
			signal()
			if err != nil {
				return
			}
		}
	})
	for range more {
		n.pass()
		mu.Lock()
		data, over := bytes.Clone(pending.Bytes()), ended
		pending.Reset()
		mu.Unlock()
		if request {
			for _, r := range requests {
				if bytes.Contains(data, r) {
					n.step()
					break
				}
			}
		}
		if len(data) > 0 {
			if _, err := dst.Write(data); err != nil {
				src.Close()
				over = true
			}
		}
		if over {
			dst.Close()
			return
		}
	}
}
