package fallback

import (
	"sync"
	"sync/atomic"
)

// maxIdle is how many workers wait for work; others end.
const maxIdle = 64

// Workers are the goroutines of a client. They are used again, since requests need
// more stack than a new goroutine has, and to grow it costs as much as the request.
type workers struct {
	work chan func()
	end  chan struct{}
	idle atomic.Int32

	mu     sync.Mutex
	closed bool
	busy   sync.WaitGroup
	all    sync.WaitGroup
}

func newWorkers() *workers {
	return &workers{work: make(chan func()), end: make(chan struct{})}
}

// run runs f on a goroutine that close waits for. It returns false if they are closed,
// and then does not run f.
func (w *workers) run(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.busy.Add(1)
	select {
	case w.work <- f:
	default:
		w.all.Go(func() { w.serve(f) })
	}
	return true
}

func (w *workers) serve(f func()) {
	for {
		f()
		w.busy.Done()
		if w.idle.Add(1) > maxIdle {
			w.idle.Add(-1)
			return
		}
		select {
		case f = <-w.work:
			w.idle.Add(-1)
		case <-w.end:
			return
		}
	}
}

// close waits for what is under way, and takes no more.
func (w *workers) close() {
	w.mu.Lock()
	first := !w.closed
	w.closed = true
	w.mu.Unlock()
	w.busy.Wait()
	if first {
		close(w.end)
	}
	w.all.Wait()
}
