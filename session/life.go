package session

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
)

// A Life is one server session, from its creation to its end. Nothing of it
// survives: a new life has a new id, and neither nodes nor watches of the old
// one. It is what recipes are written on; those who only use them never see it.
//
// Its methods that talk to the ensemble are bounded by their ctx whatever the
// connection does, wait while the connection is down, and fail with an [Error]
// whose reason is [Life.Err] once the life is over. All are safe for concurrent
// use. Paths are taken below Config.Chroot.
type Life struct {
	s   *Session
	log *slog.Logger

	ctx  context.Context // ends with the life
	stop context.CancelCauseFunc
	done chan struct{} // closed when everything held has been revoked
	wg   sync.WaitGroup

	conn       *zk.Conn
	clientGone chan struct{} // closed when conn's goroutines have ended

	id      int64 // set before start returns
	watches *watchTable

	mayProve atomic.Bool // our nodes' ACL lets us check them

	kickWatchdog, kickHeartbeat chan struct{} // capacity 1: look again

	mu        sync.Mutex
	ended     error
	wire      *wire
	connected bool
	gate      chan struct{} // closed while connected
	downSince time.Time
	timeout   time.Duration // as granted
	win       window
	holds     map[*Hold]struct{}
	removals  map[*removal]struct{} // under way
	creations map[string]*creation  // under way, by their data
	round     []*Hold               // those that this round of heartbeats has yet to check
}

func newLife(s *Session) *Life {
	l := &Life{
		s:             s,
		log:           s.cfg.Logger,
		done:          make(chan struct{}),
		clientGone:    make(chan struct{}),
		kickWatchdog:  make(chan struct{}, 1),
		kickHeartbeat: make(chan struct{}, 1),
		gate:          make(chan struct{}),
		holds:         make(map[*Hold]struct{}),
		removals:      make(map[*removal]struct{}),
		creations:     make(map[string]*creation),
	}
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	l.watches = newWatchTable()
	return l
}

// start connects and returns nil once the life stands: session confirmed,
// authenticated, chroot there. Otherwise the life has ended and the error says
// why. It gives up when the session is closed.
func (l *Life) start() error {
	unhook := context.AfterFunc(l.s.ctx, func() { l.end(ErrClosed) })
	defer unhook()
	if err := l.dial(); err != nil {
		l.end(err)
		return err
	}
	l.wg.Go(l.watchdog)
	l.wg.Go(l.heartbeats)
	l.s.wg.Go(l.bury)
	if err := l.makeChroot(); err != nil {
		l.end(err)
		return l.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// ID returns the id of the server session.
func (l *Life) ID() int64 { return l.id }

// Timeout returns the session timeout that the ensemble granted.
func (l *Life) Timeout() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeout
}

// Done is closed when the life is over and everything held has been revoked.
func (l *Life) Done() <-chan struct{} { return l.done }

// Err returns nil, or why the life ended. It turns non-nil before Done is closed.
func (l *Life) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// end ends the life, once: what is held is revoked first, then done is closed,
// then the state is announced. The connection is closed by bury.
func (l *Life) end(cause error) {
	l.mu.Lock()
	if l.ended != nil {
		l.mu.Unlock()
		return
	}
	l.ended = cause
	holds, removals, log := l.holds, l.removals, l.log
	l.holds, l.removals = nil, nil
	l.mu.Unlock()

	revoke(slices.Collect(maps.Keys(holds)), cause, true)
	if cause == ErrClosed {
		l.farewell(holds, removals)
	}
	l.stop(cause)
	close(l.done)
	l.announce()
	log.Info("session over", "cause", cause)
}

// bury closes the connection of an ended life and waits for what it started.
func (l *Life) bury() {
	<-l.ctx.Done()
	l.closeClient()
	l.wg.Wait()
}

// closeClient asks the ensemble to end the session, and waits for that for a
// second if the connection is up, and then for the client's goroutines. The life
// has ended.
func (l *Life) closeClient() {
	l.mu.Lock()
	w, up := l.wire, l.connected
	l.mu.Unlock()
	if !up && w != nil {
		w.closeSession() // a handshake may have got so far that there is one
		w.waitUntilLost(50 * time.Millisecond)
		w.Close() // a ghost from now on, which answers the client
	}
	closed := make(chan struct{})
	go func() {
		l.conn.Close()
		close(closed)
	}()
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-closed:
	case <-t.C:
	}
	if w != nil {
		w.Close()
	}
	<-closed
	<-l.clientGone
}

// announce tells the session's readers what state this life is in. Until the
// life stands, its predecessor's end is still the news.
func (l *Life) announce() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.s.current == l {
		l.announceLocked()
	}
}

// announceLocked is announce for one who holds the session's mutex.
func (l *Life) announceLocked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended == ErrClosed:
		// Close announces it when it is done
	case l.ended != nil:
		l.s.states.set(Lost)
	case l.connected:
		l.s.states.set(Connected)
	default:
		l.s.states.set(Suspended)
	}
}

// spawn runs fn on a goroutine that bury waits for; false if the life is over.
func (l *Life) spawn(fn func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return false
	}
	l.wg.Go(fn)
	return true
}

// linkUp and linkDown are called by the client when the ensemble has confirmed
// the session on a connection, and when that connection is gone.
func (l *Life) linkUp() {
	l.mu.Lock()
	if l.ended != nil { // to a ghost
		l.mu.Unlock()
		return
	}
	if !l.connected {
		l.connected = true
		close(l.gate)
	}
	l.mu.Unlock()
	kick(l.kickWatchdog)
	l.announce()
}

func (l *Life) linkDown() {
	l.mu.Lock()
	if !l.connected || l.ended != nil {
		l.mu.Unlock()
		return
	}
	l.connected = false
	l.gate = make(chan struct{})
	l.downSince = time.Now()
	var strict []*Hold
	if l.s.cfg.RevokeOnSuspend {
		for h := range l.holds {
			strict = append(strict, h)
		}
		clear(l.holds)
	}
	l.mu.Unlock()
	revoke(strict, ErrSuspended, false)
	kick(l.kickWatchdog)
	l.log.Info("connection down", "trusted_for", max(0, l.Remaining()))
	l.announce()
}

func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watchdog ends the life by our own clock: at the end of the trust window while
// something is held, and otherwise after a whole timeout without a connection.
func (l *Life) watchdog() {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		l.mu.Lock()
		var at time.Time
		var cause error
		if len(l.holds) > 0 && !fault.Is(fault.RevokeAfterLoss) {
			at, cause = l.win.until, ErrTrustOver
		} else if !l.connected {
			at, cause = l.downSince.Add(l.timeout), ErrUnreachable
		}
		l.mu.Unlock()
		if at.IsZero() || fault.Is(fault.RevokeWhenTold) {
			t.Reset(time.Hour)
		} else if d := time.Until(at); d > 0 {
			t.Reset(d)
		} else {
			l.end(cause)
			return
		}
		select {
		case <-t.C:
		case <-l.kickWatchdog:
		case <-l.ctx.Done():
			return
		}
	}
}
