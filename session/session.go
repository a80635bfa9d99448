package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"
)

// A Session is the program's connection to an ensemble. It outlives the server
// sessions behind it: see [Life]. It is safe for concurrent use, and meant to be
// shared.
type Session struct {
	cfg    Config
	states history

	ctx     context.Context // ends when Close begins
	closing context.CancelFunc
	wg      sync.WaitGroup // everything that this session started
	closed  chan struct{}  // closed when Close has done its work

	mu      sync.Mutex
	current *Life         // the one that stands, or the last one that stood
	changed chan struct{} // closed and replaced when current changes
	fatal   error         // before the first life stood: why it never will
	last    error         // why the last attempt came to nothing

	noContainers atomic.Bool // the ensemble is older than container nodes
	noCreate2    atomic.Bool // and than the create that answers with a stat
}

// Open connects and blocks until the first server session stands (authenticated,
// chroot made) or ctx ends. The error then matches context.Cause(ctx) and says
// what last went wrong. Credentials that the ensemble refuses fail Open at once
// with ErrAuthFailed, a bad cfg with ErrInvalid before anything is sent. Close
// must be called in the end.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, &Error{Op: "open", Path: cfg.realm(), Reason: context.Cause(ctx)}
	}
	s := &Session{cfg: cfg, changed: make(chan struct{}), closed: make(chan struct{})}
	s.ctx, s.closing = context.WithCancel(context.Background())
	s.wg.Go(s.run)
	if _, err := s.Life(ctx); err != nil {
		s.mu.Lock()
		last := s.last
		s.mu.Unlock()
		s.Close()
		var e *Error
		if errors.As(err, &e) {
			err = e.Reason
		}
		return nil, &Error{Op: "open", Path: cfg.realm(), Reason: err, LastErr: last}
	}
	return s, nil
}

// run keeps one life after the other until the session is closed.
func (s *Session) run() {
	retry := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0))
	for s.ctx.Err() == nil {
		l := newLife(s)
		if err := l.start(); err != nil {
			s.note(err)
			s.cfg.Logger.Warn("no session", "error", err)
			if errors.Is(err, ErrAuthFailed) || errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrInvalidACL) {
				s.fail(err)
			}
			s.pause(retry.NextBackOff())
			continue
		}
		retry.Reset()
		s.adopt(l)
		<-l.done
		l.announce() // before there is other news
	}
}

func (s *Session) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

func (s *Session) adopt(l *Life) {
	s.mu.Lock()
	s.current = l
	close(s.changed)
	s.changed = make(chan struct{})
	closing := s.ctx.Err() != nil
	s.states.set(Connected) // which it was, whatever has happened since
	l.announceLocked()      // before anybody can see l
	s.mu.Unlock()
	if closing { // Close came too early to see l
		l.end(ErrClosed)
	}
}

// note remembers what last went wrong, for Open's error.
func (s *Session) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = err
}

// fail ends the wait of Open. Once a life has stood, credentials that are
// refused may be accepted again, and trying goes on.
func (s *Session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil || s.fatal != nil {
		return
	}
	s.fatal = err
	close(s.changed)
	s.changed = make(chan struct{})
}

// Life returns the present server session; if the last one is over, it waits
// until the next stands, or ctx ends, or the session is closed (ErrClosed). The
// life may end at any moment after.
func (s *Session) Life(ctx context.Context) (*Life, error) {
	for {
		if ctx.Err() != nil {
			return nil, &Error{Op: "open", Path: s.cfg.realm(), Reason: context.Cause(ctx)}
		}
		if s.ctx.Err() != nil {
			return nil, &Error{Op: "open", Path: s.cfg.realm(), Reason: ErrClosed}
		}
		s.mu.Lock()
		l, changed, fatal := s.current, s.changed, s.fatal
		s.mu.Unlock()
		if fatal != nil {
			return nil, &Error{Op: "open", Path: s.cfg.realm(), Reason: fatal}
		}
		if l != nil && l.Err() == nil {
			return l, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-s.ctx.Done():
		}
	}
}

// ID returns the id of the present server session, or of the last one while the
// next is not there yet.
func (s *Session) ID() int64 { return s.latest().id }

// Timeout returns the session timeout that the ensemble granted.
func (s *Session) Timeout() time.Duration { return s.latest().Timeout() }

// latest is never nil once Open has returned.
func (s *Session) latest() *Life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Realm names the ensemble and the chroot. Sessions with the same realm see the
// same nodes under the same paths. It is made of Config.Servers as they are
// written: another list of the same servers is another realm.
func (s *Session) Realm() string { return s.cfg.realm() }

// Close revokes what is held (with ErrClosed), gives it up on the server in
// order, ends the server session, and waits for every goroutine that the session
// started, except callbacks that don't return. It takes a few round trips on a healthy connection, and about a second
// on one that does not answer: then the ensemble removes what is left when the
// session's timeout is over. Calls that wait return ErrClosed. Close is
// idempotent, also when called at the same time, and returns nil.
func (s *Session) Close() error {
	s.mu.Lock()
	first := s.ctx.Err() == nil
	l := s.current
	s.closing()
	s.mu.Unlock()
	if !first {
		<-s.closed
		return nil
	}
	if l != nil {
		l.end(ErrClosed)
	}
	s.wg.Wait()
	s.states.set(Closed)
	close(s.closed)
	return nil
}

// String returns "session 0x… on …".
func (s *Session) String() string {
	return fmt.Sprintf("session %#x on %s", s.ID(), s.cfg.realm())
}
