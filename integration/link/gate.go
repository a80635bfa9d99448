package link

import "sync"

// gate is one direction of a link: open, or shut. Its zero value is open.
type gate struct {
	mu     sync.RWMutex  // read-locked while something passes
	opened chan struct{} // nil if open, otherwise closed by open
}

// shut returns when nothing passes any more.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// pass calls f while the gate is open; if it is shut it waits, until gone is
// closed at the latest. It reports whether f was called, with success.
func (g *gate) pass(gone <-chan struct{}, f func() error) bool {
	for {
		g.mu.RLock()
		opened := g.opened
		if opened == nil {
			err := f()
			g.mu.RUnlock()
			return err == nil
		}
		g.mu.RUnlock()
		select {
		case <-opened:
		case <-gone:
			return false
		}
	}
}
