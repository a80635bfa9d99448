package zktest

// lag is the state of a follower that is behind.
type lag struct {
	tree   *tree    // as it was
	missed []change // what has happened since, for the watches
}

// StaleReads makes one session the client of a follower that lags behind: from
// now on its reads are answered from the tree as it is now, and its watches hear
// of nothing, also on later connections. Its writes see the truth. It is over
// when the session sends a sync or a write (a follower answers these only after
// it has caught up) or when on is false: then the watches hear of what they have
// missed, and reads are current again. It does nothing if there is no such
// session.
func (s *Server) StaleReads(id int64, on bool) {
	s.locked(func() {
		sess := s.sessions[id]
		switch {
		case sess == nil:
		case !on:
			s.catchUp(sess)
		case sess.lag == nil:
			sess.lag = &lag{tree: s.tree.clone()}
			s.lags[sess.lag] = struct{}{}
		}
	})
}

// catchUp ends a session's lag.
func (s *Server) catchUp(sess *session) {
	l := sess.lag
	sess.lag = nil
	delete(s.lags, l)
	if l == nil || sess.conn == nil {
		return
	}
	for _, ch := range l.missed {
		s.watches.notify(sess.conn, ch)
	}
}

// CutOffFollower makes the server, for one session's present connection, a
// follower that has lost its leader and doesn't know it yet: pings and reads are
// answered, from the tree as it is now; writes and syncs are not, and neither is
// any read behind one; watches hear of nothing; and nothing that the client sends
// keeps its session from expiring. After the expiry the connection still goes
// on. Heal ends it by resetting the connection. 0 is all connections that have a
// session. A new connection is one to a healthy server.
//
// A real follower is kinder in one respect: when a session's write waits, its
// pings wait, too. This one goes on answering pings, so that a client that takes
// them for a sign of life is found out.
func (s *Server) CutOffFollower(id int64) {
	s.locked(func() {
		for _, c := range s.connsOf(id) {
			if c.sess != nil && c.cutOff == nil && !c.detached {
				c.cutOff = &lag{tree: s.tree.clone()}
			}
		}
	})
}

// waitsForLeader reports whether a request gets no answer from a follower that
// is cut off.
func (c *conn) waitsForLeader(op Op, h handler) bool {
	c.stuck = c.stuck || c.cutOff != nil && h.kind == quorum
	return c.stuck && op != OpPing
}
