// Package witness is a resource which processes use under a lock: a server that
// lets everybody in and tells if two were in at once, or if a token was not
// larger than the one before.
package witness

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Witness is the resource.
type Witness struct {
	t        testing.TB
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	inside map[net.Conn]recipes.Token
	last   recipes.Token
	uses   int
	moved  chan struct{} // closed and replaced when somebody enters
}

// New starts a witness on the loopback interface; it ends with the test, which it
// fails when a lock does.
func New(t testing.TB) *Witness {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Witness{t: t, listener: l, inside: make(map[net.Conn]recipes.Token), moved: make(chan struct{})}
	w.wg.Go(w.serve)
	t.Cleanup(func() {
		l.Close()
		w.wg.Wait()
	})
	return w
}

// Addr is where visitors find it.
func (w *Witness) Addr() string { return w.listener.Addr().String() }

// Uses returns how often it was entered.
func (w *Witness) Uses() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.uses
}

// Entered returns a channel that is closed when somebody enters next.
func (w *Witness) Entered() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.moved
}

func (w *Witness) serve() {
	for {
		c, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.wg.Go(func() { w.visit(c) })
	}
}

// visit carries out what one visitor says, until it hangs up: a process that
// died is inside no longer.
func (w *Witness) visit(c net.Conn) {
	defer c.Close()
	defer w.leave(c)
	for lines := bufio.NewScanner(c); lines.Scan(); {
		var token recipes.Token
		if n, _ := fmt.Sscanf(lines.Text(), "enter %d", &token); n == 1 {
			w.enter(c, token)
		} else {
			w.leave(c)
		}
		io.WriteString(c, "ok\n")
	}
}

func (w *Witness) enter(c net.Conn, token recipes.Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, other := range w.inside {
		w.t.Errorf("two inside at once, with tokens %v and %v", other, token)
	}
	if token <= w.last {
		w.t.Errorf("token %v came after %v", token, w.last)
	}
	w.last = max(w.last, token)
	w.inside[c] = token
	w.uses++
	close(w.moved)
	w.moved = make(chan struct{})
}

func (w *Witness) leave(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inside, c)
}
