package main

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A lease is what a guard needs of a grant.
type lease interface {
	Remaining() time.Duration
	Verify(ctx context.Context) error
	Done() <-chan struct{}
	Err() error
}

// A command is the process group that runs under the lock.
type command interface {
	ended() <-chan struct{} // closed when its first process has ended
	signal(os.Signal)       // sent to all of them
	terminate()             // asks all of them to end
	kill()                  // ends all of them
	empty() bool            // none is left; asked only after ended
}

// errHoldOver is why a command is told to end when -max-hold is nearly over.
var errHoldOver = errors.New("held for nearly as long as -max-hold allows")

// errTrustLow is why it is told to end when no news came from the service.
var errTrustLow = errors.New("no news from the servers: what is held there may be expiring")

// A guard watches over a command while it runs under a lock.
type guard struct {
	lease   lease
	cmd     command
	signals <-chan os.Signal // passed on to cmd
	timeout time.Duration    // of the session; on Redis, the time to live
	grace   time.Duration
	holdEnd time.Time // when -max-hold is over; zero: never

	asking atomic.Bool // a Verify is under way
	asked  time.Time
}

// lead is by how much a kill is ahead of the end of trust.
func (g *guard) lead() time.Duration { return g.timeout / 40 }

// notice is how much must be left, or the command has to end.
func (g *guard) notice() time.Duration { return max(g.grace, g.lead()) }

// askAhead is by how much more than the grace must be left, or the service is
// asked. Between two heartbeats the window of a healthy session can get that low
// shortly after the grant, when few frames have been sent lately.
func (g *guard) askAhead() time.Duration { return g.timeout / 12 }

// watch returns when the command has ended. The error says why it was told to
// end or was killed, nil if neither: then processes that it has left behind are
// left alone.
//
// It is told when what is left of the trust window, or of -max-hold, is down to
// the grace, and killed when nothing but the lead is left. Once told it has to
// end, also if trust recovers: it gets as long as was left when it was told. When
// the grant is revoked outright there is no grace: another may hold the lock.
func (g *guard) watch() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	answered := make(chan struct{}, 1)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-g.cmd.ended():
			return nil
		default:
		}
		left, why := g.left()
		if left <= g.notice() {
			return g.end(left, why)
		}
		timer.Reset(g.ask(ctx, left, answered))
		select {
		case <-g.cmd.ended():
			return nil
		case <-g.lease.Done():
		case <-answered:
		case <-timer.C:
		case sig := <-g.signals:
			g.cmd.signal(sig)
		}
	}
}

// widen makes sure that the trust window is wider than the grace before the
// command is started: after a long wait for the lock it may not be.
func (g *guard) widen() error {
	ctx, cancel := context.WithTimeout(context.Background(), g.timeout)
	defer cancel()
	for g.lease.Err() == nil {
		if left, why := g.left(); left > g.notice() {
			return nil
		} else if why == errHoldOver {
			return why
		}
		if err := g.lease.Verify(ctx); err != nil {
			return err
		}
	}
	return g.lease.Err()
}

// left returns how long the command may run on without news, and what would end
// it then.
func (g *guard) left() (time.Duration, error) {
	left, why := g.lease.Remaining(), errTrustLow
	if !g.holdEnd.IsZero() && time.Until(g.holdEnd) < left {
		left, why = time.Until(g.holdEnd), errHoldOver
	}
	if err := g.lease.Err(); err != nil {
		return 0, err
	}
	return left, why
}

// ask has the service confirm the lock if little is left, and returns when to
// look again.
func (g *guard) ask(ctx context.Context, left time.Duration, answered chan<- struct{}) time.Duration {
	if ahead := left - g.notice() - g.askAhead(); ahead > 0 {
		return ahead
	}
	pause := g.timeout / 24
	if time.Since(g.asked) >= pause && g.asking.CompareAndSwap(false, true) {
		g.asked = time.Now()
		go func() { // ends with watch
			g.lease.Verify(ctx)
			g.asking.Store(false)
			select {
			case answered <- struct{}{}:
			default:
			}
		}()
	}
	return min(left-g.notice(), pause)
}

// end tells the command to end, and sees to it that it has when left is over.
func (g *guard) end(left time.Duration, why error) error {
	if left > g.lead() {
		g.cmd.terminate()
	}
	deadline := time.NewTimer(left - g.lead())
	defer deadline.Stop()
	for {
		select {
		case <-g.cmd.ended():
			return g.sweep(deadline, why)
		case sig := <-g.signals:
			g.cmd.signal(sig)
			continue
		case <-g.lease.Done():
		case <-deadline.C:
		}
		g.kill()
		return g.reason(why)
	}
}

// sweep waits for the rest of a group whose first process has ended, and kills
// it in the end. There is no way to be told that a group is empty.
func (g *guard) sweep(deadline *time.Timer, why error) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !g.cmd.empty() {
		select {
		case <-look.C:
			continue
		case sig := <-g.signals:
			g.cmd.signal(sig)
			continue
		case <-g.lease.Done():
		case <-deadline.C:
		}
		g.kill()
		break
	}
	return g.reason(why)
}

// kill ends the group and waits until it is gone, for no longer than the lead: a
// process is there for a moment after it was killed, and one that nobody reaps
// counts for ever.
func (g *guard) kill() {
	g.cmd.kill()
	<-g.cmd.ended()
	patience := time.NewTimer(g.lead())
	defer patience.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !g.cmd.empty() {
		select {
		case <-look.C:
		case <-patience.C:
			return
		}
	}
}

// reason prefers what the grant says in the end.
func (g *guard) reason(why error) error {
	if err := g.lease.Err(); errors.Is(err, recipes.ErrRevoked) {
		return err
	}
	return why
}
