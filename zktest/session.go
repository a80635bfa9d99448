package zktest

import (
	"crypto/rand"
	"slices"
	"time"
)

// session is one client's session. It outlives its connections, and ends by
// being closed, by expiring or by Wipe.
type session struct {
	id       int64
	password [16]byte
	timeout  time.Duration
	expires  time.Time
	alarm    *alarm
	conn     *conn // nil while disconnected
	lag      *lag  // non-nil while its reads are stale
}

// SessionInfo describes a session as the server sees it.
type SessionInfo struct {
	ID         int64
	Timeout    time.Duration // negotiated
	Connected  bool
	Ephemerals int
	Watches    int
}

// openSession makes a session, which like every write takes a zxid.
func (s *Server) openSession(id int64, timeout time.Duration) *session {
	sess := &session{id: id, timeout: timeout}
	rand.Read(sess.password[:])
	s.sessions[id] = sess
	s.begin(id, nil).end(codeOK)
	s.touch(sess)
	s.log.Debug("session opened", "session", hex(id), "timeout", timeout)
	return sess
}

func (s *Server) nextSessionID() int64 {
	s.lastSession++
	return s.lastSession
}

// touch starts the session's time anew. The alarm isn't put off, which would be
// work for every request: it finds out by itself that it came too early.
func (s *Server) touch(sess *session) {
	sess.expires = time.Now().Add(sess.timeout)
	if sess.alarm == nil || sess.expires.Before(sess.alarm.due) {
		s.setAlarm(sess)
	}
}

func (s *Server) setAlarm(sess *session) {
	if sess.alarm != nil {
		sess.alarm.stop()
	}
	sess.alarm = s.after(time.Until(sess.expires), func() {
		sess.alarm = nil
		s.checkExpiry(sess)
	})
}

func (s *Server) checkExpiry(sess *session) {
	if time.Now().Before(sess.expires) {
		s.setAlarm(sess)
		return
	}
	s.log.Debug("session expired", "session", hex(sess.id))
	s.expire(sess)
}

// expire ends a session against its client's will.
func (s *Server) expire(sess *session) {
	s.endSession(sess)
	if c := sess.conn; c != nil && c.cutOff == nil {
		// A follower that is cut off doesn't hear of the expiry.
		c.hangUp()
	}
}

// endSession removes a session with its ephemeral nodes, in one txn. What
// becomes of the connection is the caller's business.
func (s *Server) endSession(sess *session) {
	delete(s.sessions, sess.id)
	delete(s.lags, sess.lag)
	if sess.alarm != nil {
		sess.alarm.stop()
		sess.alarm = nil
	}
	tx := s.begin(sess.id, nil)
	for _, path := range s.tree.ephemeralsOf(sess.id) {
		tx.remove(path)
	}
	tx.end(codeOK)
}

func (s *Server) sortedSessions() []*session {
	list := make([]*session, 0, len(s.sessions))
	for _, sess := range s.sessions {
		list = append(list, sess)
	}
	slices.SortFunc(list, func(a, b *session) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return list
}
