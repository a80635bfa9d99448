package zktest

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeBuffer is how much one direction of an in-memory connection holds before
// Write waits for the reader: more than a client could have under way.
const pipeBuffer = 8 << 20

// addr is the address of either end of an in-memory connection.
type addr string

func (addr) Network() string  { return "zktest" }
func (a addr) String() string { return string(a) }

// newPipe returns the two ends of an in-memory connection. Unlike net.Pipe it
// buffers, as a socket does, and it can be reset. All waiting is on channels
// and timers, so that it works in a testing/synctest bubble.
func newPipe(client, server string) (*pipeEnd, *pipeEnd) {
	up, down := &stream{}, &stream{}
	return &pipeEnd{in: down, out: up, local: addr(client), remote: addr(server)},
		&pipeEnd{in: up, out: down, local: addr(server), remote: addr(client)}
}

// pipeEnd is one end: a net.Conn.
type pipeEnd struct {
	in, out       *stream
	local, remote addr
}

func (p *pipeEnd) Read(b []byte) (int, error) {
	n, err := p.in.read(b)
	if err != nil && err != io.EOF {
		err = &net.OpError{Op: "read", Net: "zktest", Source: p.local, Addr: p.remote, Err: err}
	}
	return n, err
}

func (p *pipeEnd) Write(b []byte) (int, error) {
	n, err := p.out.write(b)
	if err != nil {
		err = &net.OpError{Op: "write", Net: "zktest", Source: p.local, Addr: p.remote, Err: err}
	}
	return n, err
}

// Close ends both directions. The other end reads what is buffered, then EOF.
func (p *pipeEnd) Close() error {
	p.out.end(net.ErrClosed, io.EOF)
	p.in.end(syscall.EPIPE, net.ErrClosed)
	return nil
}

// reset ends both directions as a TCP reset does: the other end reads what is
// buffered, then an error.
func (p *pipeEnd) reset() {
	p.out.end(net.ErrClosed, syscall.ECONNRESET)
	p.in.end(syscall.EPIPE, net.ErrClosed)
}

func (p *pipeEnd) LocalAddr() net.Addr  { return p.local }
func (p *pipeEnd) RemoteAddr() net.Addr { return p.remote }

func (p *pipeEnd) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}

func (p *pipeEnd) SetReadDeadline(t time.Time) error {
	return p.in.setDeadline(&p.in.readBy, t, &p.in.readErr)
}

func (p *pipeEnd) SetWriteDeadline(t time.Time) error {
	return p.out.setDeadline(&p.out.writeBy, t, &p.out.writeErr)
}

// stream is one direction.
type stream struct {
	mu       sync.Mutex
	buf      []byte
	writeErr error // non-nil once writing is over
	readErr  error // what a reader gets when nothing is left; net.ErrClosed at once
	readBy   limit
	writeBy  limit
	stirred  chan struct{} // closed at the next change of any of the above; nil if nobody waits
}

// limit is a deadline. Its timer only wakes the waiters: they look at the
// clock.
type limit struct {
	at    time.Time
	timer *time.Timer
}

func (l *limit) passed() bool { return !l.at.IsZero() && !time.Now().Before(l.at) }

func (l *limit) clear() {
	if l.timer != nil {
		l.timer.Stop()
	}
	*l = limit{}
}

func (s *stream) read(b []byte) (int, error) {
	for {
		n, wait, err := s.tryRead(b)
		if wait == nil {
			return n, err
		}
		<-wait
	}
}

// tryRead reads what is there, or returns a channel to wait on.
func (s *stream) tryRead(b []byte) (int, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.readErr == net.ErrClosed:
		return 0, nil, net.ErrClosed
	case s.readBy.passed():
		return 0, nil, os.ErrDeadlineExceeded
	case len(s.buf) > 0 || len(b) == 0:
		n := copy(b, s.buf)
		if s.buf = s.buf[n:]; len(s.buf) == 0 {
			s.buf = nil
		}
		s.stir()
		return n, nil, nil
	case s.readErr != nil:
		return 0, nil, s.readErr
	}
	return 0, s.waiting(), nil
}

func (s *stream) write(b []byte) (int, error) {
	written := 0
	for {
		n, wait, err := s.tryWrite(b[written:])
		written += n
		if wait == nil {
			return written, err
		}
		<-wait
	}
}

// tryWrite writes what there is room for; if that isn't all, it returns a
// channel to wait on.
func (s *stream) tryWrite(b []byte) (int, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.writeErr != nil:
		return 0, nil, s.writeErr
	case s.writeBy.passed():
		return 0, nil, os.ErrDeadlineExceeded
	}
	n := min(len(b), pipeBuffer-len(s.buf))
	s.buf = append(s.buf, b[:n]...)
	s.stir()
	if n == len(b) {
		return n, nil, nil
	}
	return n, s.waiting(), nil
}

// end gives the reasons why writing and reading are over; the first ones stay,
// except that an end that was closed here is closed, whatever came before.
func (s *stream) end(writeErr, readErr error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writeErr == nil || writeErr == net.ErrClosed {
		s.writeErr = writeErr
		s.writeBy.clear()
	}
	if s.readErr == nil || readErr == net.ErrClosed {
		s.readErr = readErr
	}
	if s.readErr == net.ErrClosed {
		s.buf = nil
		s.readBy.clear()
	}
	s.stir()
}

func (s *stream) setDeadline(l *limit, t time.Time, closed *error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *closed == net.ErrClosed {
		return net.ErrClosed
	}
	l.clear()
	l.at = t
	if d := time.Until(t); !t.IsZero() && d > 0 {
		l.timer = time.AfterFunc(d, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.stir()
		})
	}
	s.stir()
	return nil
}

func (s *stream) stir() {
	if s.stirred != nil {
		close(s.stirred)
		s.stirred = nil
	}
}

func (s *stream) waiting() <-chan struct{} {
	if s.stirred == nil {
		s.stirred = make(chan struct{})
	}
	return s.stirred
}
