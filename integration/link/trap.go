package link

import (
	"bytes"
	"sync"
)

// A Trap waits for one request and then does something to the connection that
// carries it. It needs a protocol in which a client awaits the answer before it
// sends the next request on a connection: of several at a time it would take the
// first answer for the one it waits for.
type Trap struct {
	match  func(request []byte) bool
	answer bool // it is the answer that is caught, not the request
	lose   bool
	caught bool // guarded by the link's mutex

	sprung chan struct{}
	once   sync.Once
	let    chan struct{} // closed by Release
}

// LoseAnswer lets the next request that match likes through to the server, and
// breaks the connection when the answer comes: the request was carried out, and
// the client can't know. match is shown what the client sent, as it came.
func (l *Link) LoseAnswer(match func(request []byte) bool) *Trap {
	return l.arm(&Trap{match: match, answer: true, lose: true})
}

// HoldAnswer lets the next request that match likes through to the server, and
// holds back the answer, and what comes after it on that connection.
func (l *Link) HoldAnswer(match func(request []byte) bool) *Trap {
	return l.arm(&Trap{match: match, answer: true})
}

// HoldRequest holds back the next request that match likes, and what comes after
// it on that connection. It reaches the server when it is let go, also if the
// client has hung up meanwhile.
func (l *Link) HoldRequest(match func(request []byte) bool) *Trap {
	return l.arm(&Trap{match: match})
}

// Containing likes a request that has all these words in it, in letters of either
// case.
func Containing(words ...string) func(request []byte) bool {
	return func(request []byte) bool {
		request = bytes.ToLower(request)
		for _, w := range words {
			if !bytes.Contains(request, bytes.ToLower([]byte(w))) {
				return false
			}
		}
		return true
	}
}

// Sprung returns a channel that is closed when the trap has caught its request,
// or the answer to it.
func (t *Trap) Sprung() <-chan struct{} { return t.sprung }

// Release lets go what is held. A trap that has caught nothing yet will catch
// nothing. Heal does the same to all traps of a link.
func (t *Trap) Release() { t.once.Do(func() { close(t.let) }) }

func (t *Trap) released() bool {
	select {
	case <-t.let:
		return true
	default:
		return false
	}
}

func (l *Link) arm(t *Trap) *Trap {
	t.sprung, t.let = make(chan struct{}), make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.traps = append(l.traps, t)
	return t
}

// caught returns the trap that this request goes into, if any. Each catches one.
func (l *Link) caught(request []byte) *Trap {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.traps {
		if !t.caught && !t.released() && t.match(request) {
			t.caught = true
			return t
		}
	}
	return nil
}

// hold returns when the trap is released, or with false when the connection is
// gone.
func (t *Trap) hold(gone <-chan struct{}) bool {
	close(t.sprung)
	select {
	case <-t.let:
		return true
	case <-gone:
		return false
	}
}
