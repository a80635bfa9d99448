package zktest

import (
	"maps"
	"slices"
	"sync"
)

// Request is one request as the server receives it.
type Request struct {
	Session int64 // 0 for the OpConnect of a new session
	Op      Op
	Path    string // empty where a request has none, or more than one
	Xid     int32
}

// Counts says what has come and gone since the server started, or since
// ResetCounts.
type Counts struct {
	BytesIn, BytesOut int64 // frames with their length prefixes
	Events            int64 // watch events sent

	byOp      map[Op]int
	bySession map[int64]*Counts
}

// Session returns the share of one session. The handshakes that ask for a new
// session are the session 0's.
func (c Counts) Session(id int64) Counts {
	if share := c.bySession[id]; share != nil {
		return *share
	}
	return Counts{}
}

// Of returns the number of requests of one kind.
func (c Counts) Of(op Op) int { return c.byOp[op] }

// Total returns the number of all requests but pings.
func (c Counts) Total() int {
	n := 0
	for op, count := range c.byOp {
		if op != OpPing {
			n += count
		}
	}
	return n
}

func (c Counts) clone() Counts {
	c.byOp = maps.Clone(c.byOp)
	c.bySession = maps.Clone(c.bySession)
	for id, share := range c.bySession {
		share := share.clone()
		c.bySession[id] = &share
	}
	return c
}

// tally counts something for a session and for all.
func (s *Server) tally(session int64, count func(*Counts)) {
	if s.counts.bySession == nil {
		s.counts.bySession = map[int64]*Counts{}
	}
	share := s.counts.bySession[session]
	if share == nil {
		share = &Counts{}
		s.counts.bySession[session] = share
	}
	count(share)
	count(&s.counts)
}

// rule waits for the n-th request of one kind.
type rule struct {
	op   Op
	left int
	act  func(*verdict)
}

// verdict is what is to happen to one request.
type verdict struct {
	req       Request
	observe   func(Request)
	holds     []hold
	lose      bool
	loseReply bool
	fail      Code
}

type hold struct{ arrived, release chan struct{} }

// arrive counts a request and asks the rules about it. Every rule that waits
// for its kind counts it, also if another one acts on it.
func (s *Server) arrive(req Request) verdict {
	s.tally(req.Session, func(n *Counts) {
		if n.byOp == nil {
			n.byOp = map[Op]int{}
		}
		n.byOp[req.Op]++
	})
	v := verdict{req: req, observe: s.faults.onRequest}
	s.faults.rules = slices.DeleteFunc(s.faults.rules, func(r *rule) bool {
		if r.op != req.Op {
			return false
		}
		r.left--
		if r.left == 0 {
			r.act(&v)
		}
		return r.left <= 0
	})
	s.stirred()
	return v
}

// obey does what comes before carrying out a request, without the lock. It
// reports whether to go on with it.
func (c *conn) obey(v verdict) bool {
	if v.observe != nil {
		v.observe(v.req)
	}
	for _, h := range v.holds {
		close(h.arrived)
		select {
		case <-h.release:
		case <-c.gone:
			return false
		}
	}
	if v.lose {
		c.s.locked(c.abortAfter)
	}
	return !v.lose
}

func (s *Server) addRule(op Op, n int, act func(*verdict)) {
	s.locked(func() {
		s.faults.rules = append(s.faults.rules, &rule{op: op, left: max(n, 1), act: act})
	})
}

// LoseReply makes the server carry out the n-th request of a kind from now on (1
// is the next), keep the answer to itself and reset the connection. Answers
// before it arrive. Requests of all sessions count.
func (s *Server) LoseReply(op Op, n int) {
	s.addRule(op, n, func(v *verdict) { v.loseReply = true })
}

// LoseRequest makes the server reset the connection at the n-th request of a
// kind from now on, without carrying it out. Requests of all sessions count.
func (s *Server) LoseRequest(op Op, n int) {
	s.addRule(op, n, func(v *verdict) { v.lose = true })
}

// FailRequest makes the server answer the n-th request of a kind from now on
// with an error code, without carrying it out. Requests of all sessions count.
// A handshake can't be answered so; see AnswerResumeWith.
func (s *Server) FailRequest(op Op, n int, code int32) {
	s.addRule(op, n, func(v *verdict) { v.fail = Code(code) })
}

// HoldRequest makes the n-th request of a kind from now on wait, and everything
// behind it on its connection, before the server does anything with it. arrived
// is closed when it is there; release, which may be called more than once, lets
// it go. If the connection goes first, the request is never carried out.
// Requests of all sessions count.
func (s *Server) HoldRequest(op Op, n int) (arrived <-chan struct{}, release func()) {
	h := hold{make(chan struct{}), make(chan struct{})}
	s.addRule(op, n, func(v *verdict) { v.holds = append(v.holds, h) })
	return h.arrived, sync.OnceFunc(func() { close(h.release) })
}

// OnRequest calls f for every request when it arrives, before anything is done
// with it; nil ends it. f may call the server's methods except Close. While it
// runs, its connection waits.
func (s *Server) OnRequest(f func(Request)) {
	s.locked(func() { s.faults.onRequest = f })
}

// Requests returns the counts.
func (s *Server) Requests() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts.clone()
}

// ResetCounts starts the counts anew.
func (s *Server) ResetCounts() {
	s.locked(func() { s.counts = Counts{} })
}
