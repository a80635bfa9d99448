package zktest

import (
	"bufio"
	"io"
	"time"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

const (
	xidEvent       = -1
	xidPing        = -2
	stateConnected = 3
)

type connectRequest struct {
	protocol    int32
	lastZxid    int64
	timeout     time.Duration
	session     int64
	password    []byte
	hasReadOnly bool // sent by clients since 3.4; it is then in the answer, too
}

func parseConnect(frame []byte) (connectRequest, error) {
	d := &jute.Decoder{Buf: frame}
	r := connectRequest{
		protocol: d.Int32(),
		lastZxid: d.Int64(),
		timeout:  time.Duration(d.Int32()) * time.Millisecond,
		session:  d.Int64(),
		password: d.Bytes(),
	}
	r.hasReadOnly = d.Err == nil && len(d.Buf) > 0
	return r, d.Err
}

// readFirst reads the first frame of a connection, or answers the four-letter
// word that stands in its place.
func (c *conn) readFirst(r *bufio.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	if answer, ok := c.s.word(string(head[:])); ok {
		c.nc.Write([]byte(answer))
		return nil, io.EOF
	}
	return jute.ReadBody(r, head)
}

// handshake answers the first frame. It reports whether to read on.
func (c *conn) handshake(frame []byte) bool {
	req, err := parseConnect(frame)
	if err != nil {
		return false
	}
	s := c.s
	s.mu.Lock()
	s.tally(req.session, func(n *Counts) { n.BytesIn += int64(len(frame) + 4) })
	c.received++
	c.lastOp = OpConnect
	c.hole = s.faults.holeFor(req.session)
	if c.hole.covers(ToServer) {
		c.detached = true // hangs until Heal, or until the client has enough
		s.mu.Unlock()
		return true
	}
	verdict := s.arrive(Request{Session: req.session, Op: OpConnect})
	s.mu.Unlock()
	if !c.obey(verdict) {
		return true
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.stirred()
	if c.detached {
		return true
	}
	if req.lastZxid > s.tree.zxid {
		// The client has seen a future that this server doesn't have.
		s.log.Debug("client refused: it is ahead", "zxid", hex(req.lastZxid), "here", hex(s.tree.zxid))
		return false
	}
	sess := s.admit(c, req)
	if !verdict.loseReply {
		c.push(outgoing{frame: connectReply(req, sess)})
	}
	switch {
	case verdict.loseReply:
		c.abortAfter()
	case sess == nil:
		c.hangUp()
	}
	return true
}

// admit finds or makes the session of a new connection, or returns nil if it
// has expired or the password is wrong.
func (s *Server) admit(c *conn, req connectRequest) *session {
	timeout := min(max(req.timeout, s.opts.minTimeout), s.opts.maxTimeout)
	var sess *session
	if req.session == 0 {
		sess = s.openSession(s.nextSessionID(), timeout)
	} else {
		sess = s.sessions[req.session]
		if sess != nil && sess.conn != nil {
			// Even a wrong password throws the old connection out.
			sess.conn.hangUp()
		}
		if sess != nil && string(sess.password[:]) != string(req.password) {
			sess = nil
		}
		if id, ok := s.faults.takeResumeAnswer(); ok {
			sess = s.sessions[id]
			if sess == nil && id != 0 {
				sess = s.openSession(id, timeout)
			}
		}
	}
	if sess == nil {
		return nil
	}
	if sess.conn != nil {
		sess.conn.hangUp()
	}
	sess.timeout = timeout
	sess.conn, c.sess = c, sess
	s.touch(sess)
	return sess
}

// connectReply encodes the answer; without a session it says that the session
// has expired.
func connectReply(req connectRequest, sess *session) []byte {
	e := jute.NewFrame()
	e.Int32(0)
	if sess == nil {
		e.Int32(0)
		e.Int64(0)
		e.Bytes(make([]byte, 16))
	} else {
		e.Int32(int32(sess.timeout / time.Millisecond))
		e.Int64(sess.id)
		e.Bytes(sess.password[:])
	}
	if req.hasReadOnly {
		e.Bool(false) // this server is never read-only
	}
	return e.Sealed()
}
