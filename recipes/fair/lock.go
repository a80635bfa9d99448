package fair

import (
	"context"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// A Lock is a lock at one path. It holds nothing itself: it may be shared by any
// number of goroutines, each call is a contender of its own, and it goes on
// working when the session behind it is lost and replaced.
type Lock struct {
	sess *session.Session
	set  recipes.Settings
	p    params
	main *queue.Queue
	gate *gate // of the flow; nil without one
}

// New returns the lock at path, which is taken below the session's chroot. The nodes
// are made when they are first needed, as containers, and vanish by themselves when
// they are no longer used: that of the path and, for flows, those below path.flows.
// New sends nothing; a nil session, a bad path or option is an error that matches
// recipes.ErrInvalid.
func New(s *session.Session, path string, opts ...recipes.Option) (*Lock, error) {
	l := &Lock{sess: s}
	var err error
	if l.set, err = recipes.NewSettings(opts, l.p.known); err != nil {
		return nil, err
	}
	if err := l.p.check(); err != nil {
		return nil, err
	}
	if l.main, err = queue.New(s, path, queue.Exclusive, l.set); err != nil {
		return nil, err
	}
	if l.p.flows {
		if l.gate, err = newGate(l); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Lock waits its turn and returns the grant. It is Join and Wait in one, and leaves
// the queue if it fails. ctx bounds the wait, never the hold: once Lock has returned,
// the grant lasts until Release or revocation. If ctx has ended, on entry or when the
// turn comes, Lock fails, also where the lock is free. A Lock that fails leaves
// nothing behind; where the connection is down at that moment, that is seen to in
// the background.
//
// If the session is lost while it waits, Lock queues again, at the tail, unless the
// option recipes.FailOnLoss was given.
//
// Errors, inside a *recipes.Error: context.Cause(ctx); recipes.ErrDeadlock (ctx
// comes from a live grant of this lock), ErrConflict, ErrPermission, ErrExhausted,
// ErrSessionClosed.
func (l *Lock) Lock(ctx context.Context) (*recipes.Grant, error) {
	if l.gate == nil {
		return l.main.Acquire(ctx, queue.Contender, false)
	}
	if ctx.Err() != nil {
		return nil, l.fail("lock", context.Cause(ctx))
	}
	if g, err := l.main.Under(ctx, queue.Contender); g != nil || err != nil {
		return g, l.fail("lock", err)
	}
	for {
		t, err := l.join(ctx)
		if err == nil {
			var g *recipes.Grant
			if g, err = t.wait(ctx); err == nil {
				return g, nil
			}
			t.leave()
		}
		if t == nil || l.set.FailOnLoss || !queue.Lost(ctx, t.life, err) {
			return nil, l.fail("lock", err)
		}
		l.set.Logger.Info("place in the queue lost, queueing again", "path", l.Path(), "cause", err)
	}
}

// TryLock returns the grant if nobody is ahead, in the lock's queue or in that of the
// own flow, and recipes.ErrBusy otherwise. A busy lock is found busy without writing
// anything. It blocks only for as long as the ensemble takes to answer, which ctx
// bounds. A flow that would have to sit out (ByHoldTime) need not: nobody is in line.
func (l *Lock) TryLock(ctx context.Context) (*recipes.Grant, error) {
	bid := queue.Bid{Keyword: queue.Contender, Op: "trylock", Try: true}
	if l.gate != nil && ctx.Err() == nil {
		var busy bool
		var err error
		if busy, err = l.gate.busy(ctx); err == nil && busy {
			err = recipes.ErrBusy
		}
		if err != nil {
			if g, nested := l.main.Under(ctx, queue.Contender); g != nil || nested != nil {
				return g, l.fail("trylock", nested)
			}
			return nil, l.fail("trylock", err)
		}
		bid.Flow = l.p.Name
		bid = l.gate.bid(l.account(), bid)
	}
	return l.main.Bid(ctx, bid)
}

// Path returns the lock's path.
func (l *Lock) Path() string { return l.main.Path() }

// Key implements recipes.Lockable.
func (l *Lock) Key() string { return l.main.Key() }

func (l *Lock) fail(op string, err error) error { return queue.Fail(op, l.Path(), err) }
