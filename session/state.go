package session

import (
	"context"
	"iter"
	"sync"
)

// A State is what a Session is in.
type State int

const (
	// Connected: the ensemble has confirmed the session on the present connection.
	Connected State = iota + 1
	// Suspended: the connection is down and the trust window still open. What is
	// held lives on (unless Config.RevokeOnSuspend).
	Suspended
	// Lost: the session is over. Everything held was revoked before this state
	// was announced. A new one is being opened.
	Lost
	// Closed: Close was called. The last state.
	Closed
)

func (s State) String() string {
	switch s {
	case Connected:
		return "connected"
	case Suspended:
		return "suspended"
	case Lost:
		return "lost"
	case Closed:
		return "closed"
	}
	return "none"
}

// A history of states is a list that grows at its end: every reader has its own
// place in it, sees each state, and delays nobody.
type history struct {
	mu   sync.Mutex
	last *chapter
}

type chapter struct {
	state State
	ended chan struct{} // closed when next is set
	next  *chapter
}

func (h *history) set(s State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last != nil && (h.last.state == s || h.last.state == Closed) {
		return
	}
	c := &chapter{state: s, ended: make(chan struct{})}
	if h.last != nil {
		h.last.next = c
		close(h.last.ended)
	}
	h.last = c
}

func (h *history) now() *chapter {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// State returns the present state.
func (s *Session) State() State { return s.states.now().state }

// States yields the present state and then each later one, in order, none left
// out, until ctx ends or the session is closed (Closed is yielded last). A slow
// reader delays nobody. Any number may read at a time.
func (s *Session) States(ctx context.Context) iter.Seq[State] {
	return func(yield func(State) bool) {
		for c := s.states.now(); ; c = c.next {
			if ctx.Err() != nil || !yield(c.state) || c.state == Closed {
				return
			}
			select {
			case <-c.ended:
			case <-ctx.Done():
				return
			}
		}
	}
}
