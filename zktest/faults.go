package zktest

import (
	"fmt"
	"time"
)

// faults is what is wrong with the server at the moment.
type faults struct {
	refuse       bool
	delay        time.Duration
	holes        map[int64]Direction // by session; 0 is all
	rules        []*rule
	resumeAnswer *int64
	onRequest    func(Request)
}

func newFaults() faults { return faults{holes: map[int64]Direction{}} }

func (f *faults) takeResumeAnswer() (int64, bool) {
	if f.resumeAnswer == nil {
		return 0, false
	}
	id := *f.resumeAnswer
	f.resumeAnswer = nil
	return id, true
}

// locked runs f with the server locked, and wakes those who wait for a state.
func (s *Server) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.stirred()
	f()
}

// connsOf returns the connection of one session, or all connections for 0.
func (s *Server) connsOf(id int64) []*conn {
	var list []*conn
	for c := range s.conns {
		if id == 0 || c.sess != nil && c.sess.id == id {
			list = append(list, c)
		}
	}
	return list
}

// Expire ends a session as its time-out would: its ephemeral nodes go, watches
// fire, and its connection is closed. The client learns why only when it comes
// back. It fails if there is no such session.
func (s *Server) Expire(id int64) (err error) {
	s.locked(func() {
		sess := s.sessions[id]
		if sess == nil {
			err = fmt.Errorf("zktest: expire %s: %w", hex(id), SessionExpired)
			return
		}
		s.expire(sess)
	})
	return err
}

// Cut resets the connection of a session; the session lives on. Replies not yet
// written are lost. 0 is all connections.
func (s *Server) Cut(id int64) {
	s.locked(func() {
		for _, c := range s.connsOf(id) {
			c.cut()
		}
	})
}

// Refuse turns new connections away while on: Dial fails with ECONNREFUSED; a
// TCP connection made without Dial is reset. Those that stand are not touched.
func (s *Server) Refuse(on bool) {
	s.locked(func() { s.faults.refuse = on })
}

// Delay holds back everything that the server sends by d, in order, as a
// longer line would. 0 ends it for what is sent from then on.
func (s *Server) Delay(d time.Duration) {
	s.locked(func() { s.faults.delay = d })
}

// AnswerResumeWith makes the server answer the next attempt to resume a session
// with another session's id, and treat the connection as that session's from
// then on. An id that isn't known becomes a session; 0 answers that the session
// has expired. The session that was asked for lives on without a connection.
func (s *Server) AnswerResumeWith(id int64) {
	s.locked(func() { s.faults.resumeAnswer = &id })
}

// Wipe makes the server one that was set up anew: no data, no sessions, zxids
// from 0, all connections reset. As on the real server, a client that has seen
// a later zxid is closed without an answer whenever it comes.
func (s *Server) Wipe() {
	s.locked(func() {
		for c := range s.conns {
			c.cut()
		}
		for _, sess := range s.sessions {
			if sess.alarm != nil {
				sess.alarm.stop()
			}
		}
		clear(s.sessions)
		clear(s.lags)
		s.tree = newTree()
	})
}

// SetSequence sets the number that the next sequential child of a node gets.
// Cversion, which is computed from it, changes with it. It fails if there is no
// such node, or if next doesn't fit into 31 bits.
func (s *Server) SetSequence(path string, next int64) (err error) {
	s.locked(func() {
		n := s.tree.get(path)
		switch {
		case n == nil:
			err = fmt.Errorf("zktest: sequence of %s: %w", path, NoNode)
		case next < 0 || next > 1<<31-1:
			err = fmt.Errorf("zktest: sequence of %s: %d is out of range", path, next)
		default:
			n.creates = int32(next)
		}
	})
	return err
}
