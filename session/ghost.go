package session

import (
	"io"
	"net"
	"time"
)

// When a life is over, its client has to come to rest. The client's Close queues
// a request and waits for the answer, for a second or more if nobody is there to
// give it. So a wire whose connection is lost when the life has ended plays the
// server's part to the end: it takes up the session, answers the request to close
// it, and nothing else. Nothing that the client still has to send goes anywhere.

// ghost returns what such a wire hands to the client next: it blocks until there
// is something.
func (w *wire) ghost() ([]byte, error) {
	if !w.greeted {
		w.greeted = true
		var f frameWriter
		f.int32(0)
		f.int32(int32(DefaultTimeout / time.Millisecond))
		f.int64(max(w.life.id, 1))
		f.string(string(make([]byte, 16))) // the password
		return f.frame(), nil
	}
	<-w.asksToClose // Close is always called: see closeClient
	if w.answeredClose {
		return nil, io.EOF
	}
	w.answeredClose = true
	var f frameWriter
	f.int32(w.closeXid)
	f.int64(0) // zxid
	f.int32(0) // no error
	return f.frame(), nil
}

// newGhost returns a wire without a server.
func newGhost(l *Life) *wire {
	ours, theirs := net.Pipe()
	theirs.Close()
	return newWire(l, ours, "nowhere", 0)
}

// waitUntilLost waits until the server has hung up, but not for longer than d.
func (w *wire) waitUntilLost(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.lost:
	case <-t.C:
	}
}

// noteClose is called with the client's request to close the session.
func (w *wire) noteClose(xid int32) {
	w.closeOnce.Do(func() {
		w.closeXid = xid
		close(w.asksToClose)
	})
}
