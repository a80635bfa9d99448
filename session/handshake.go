package session

import (
	"errors"
	"fmt"
	"time"
)

// handshake reads the answer to the connect request, checks that it is about our
// session, and presents our credentials, all before the client sees the answer
// and sends anything else. It returns the answer.
func (w *wire) handshake() ([]byte, error) {
	w.SetReadDeadline(time.Now().Add(w.limit))
	answer, err := w.readFrame()
	if err != nil {
		return nil, fmt.Errorf("no answer to the connect request: %w", err)
	}
	r := reader{b: answer[4:]}
	r.int32() // protocol version
	timeout := time.Duration(r.int32()) * time.Millisecond
	id := r.int64()
	if r.err != nil {
		return nil, fmt.Errorf("answer to the connect request: %w", r.err)
	}
	if err := w.life.welcome(id, timeout, w.sentAt); err != nil {
		if id != 0 {
			w.closeSession() // it may be one that was opened for us unasked
		}
		w.life.end(err)
		return nil, err
	}
	for _, a := range w.life.s.cfg.Auth {
		if err := w.authenticate(a); err != nil {
			if errors.Is(err, ErrAuthFailed) {
				w.life.end(err)
			}
			return nil, err
		}
	}
	w.SetReadDeadline(time.Time{})
	return answer, nil
}

// welcome takes note of the ensemble's answer to our connect request: the birth
// of the session, or its return after a lost connection.
func (l *Life) welcome(id int64, timeout time.Duration, sent time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended != nil:
		return l.ended
	case id == 0:
		return ErrExpired
	case l.id != 0 && id != l.id:
		return ErrReplaced
	case timeout <= 0:
		return fmt.Errorf("session: the ensemble granted a timeout of %v", timeout)
	}
	if l.id == 0 {
		l.id = id
		l.log = l.log.With("session", fmt.Sprintf("%#x", id))
		l.win.open(sent, timeout)
	} else {
		l.win.resume(sent, timeout)
	}
	l.timeout = timeout
	return nil
}

const (
	opAuth         = 100
	opCloseSession = -11
	xidAuth        = -4
)

func (w *wire) authenticate(a Auth) error {
	var f frameWriter
	f.int32(xidAuth)
	f.int32(opAuth)
	f.int32(0)
	f.string(a.Scheme)
	f.string(a.Credentials)
	w.SetWriteDeadline(time.Now().Add(w.limit))
	_, err := w.Conn.Write(f.frame())
	w.SetWriteDeadline(time.Time{})
	if err != nil {
		return fmt.Errorf("presenting credentials: %w", err)
	}
	for {
		reply, err := w.readFrame()
		if err != nil {
			return fmt.Errorf("no answer to our credentials: %w", err)
		}
		r := reader{b: reply[4:]}
		xid, _, code := r.int32(), r.int64(), r.int32()
		if r.err != nil {
			return r.err
		}
		if xid != xidAuth {
			continue // nothing else was asked for on this connection
		}
		if code != 0 {
			return fmt.Errorf("%w: %v (code %d)", ErrAuthFailed, a, code)
		}
		return nil
	}
}

// closeSession asks the server to end whatever session the connection has, past
// the client. Nobody waits for the answer.
func (w *wire) closeSession() {
	var f frameWriter
	f.int32(1)
	f.int32(opCloseSession)
	w.SetWriteDeadline(time.Now().Add(w.limit))
	w.Conn.Write(f.frame())
}
