// Package mutex is an exclusive lock on ZooKeeper: strongly consistent, fair in
// order of arrival, with fencing tokens, and revoked by our own clock before the
// ensemble can give it to another.
package mutex

import (
	"context"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// A Mutex is a lock at one path. It holds nothing itself: it may be shared by any
// number of goroutines, each call is a contender of its own, and it goes on
// working when the session behind it is lost and replaced.
//
// It excludes, and is excluded by, every Mutex on the same path in whatever
// process, Apache Curator's InterProcessMutex, go-zookeeper's Lock, and kazoo's
// Lock made with extra_lock_patterns=["lock-"].
type Mutex struct{ q *queue.Queue }

// New returns the lock at path, which is taken below the session's chroot. The
// path's node is made when it is first needed, as a container, and vanishes by
// itself when it is no longer used. New sends nothing; a nil session, a bad path
// or option is an error that matches recipes.ErrInvalid.
func New(s *session.Session, path string, opts ...recipes.Option) (*Mutex, error) {
	set, err := recipes.NewSettings(opts, nil)
	if err != nil {
		return nil, err
	}
	q, err := queue.New(s, path, queue.Exclusive, set)
	if err != nil {
		return nil, err
	}
	return &Mutex{q}, nil
}

// Lock waits its turn, in order of arrival, and returns the grant. ctx bounds the
// wait, never the hold: once Lock has returned, the grant lasts until Release or
// revocation. If ctx has ended, on entry or when the turn comes, Lock fails, also
// where the lock is free. A Lock that fails leaves nothing behind; where the
// connection is down at that moment, that is seen to in the background.
//
// If the session is lost while it waits, Lock queues again, at the tail, unless
// the option recipes.FailOnLoss was given.
//
// An uncontended Lock takes one round trip, committed by the quorum; where the path
// has to be made first, a few more. A hand-over costs the same whatever the number of
// waiters.
//
// Errors, inside a *recipes.Error: context.Cause(ctx); recipes.ErrDeadlock (ctx
// comes from a live grant of this lock), ErrConflict, ErrPermission, ErrExhausted,
// ErrSessionClosed.
func (m *Mutex) Lock(ctx context.Context) (*recipes.Grant, error) {
	return m.q.Acquire(ctx, queue.Contender, false)
}

// TryLock returns the grant if nobody is ahead, and recipes.ErrBusy otherwise. A
// busy lock is found busy without writing anything. It blocks only for as long as
// the ensemble takes to answer, which ctx bounds: two round trips if the lock is free.
// Errors are those of Lock.
func (m *Mutex) TryLock(ctx context.Context) (*recipes.Grant, error) {
	return m.q.Acquire(ctx, queue.Contender, true)
}

// Contenders lists the holder and the waiters in queue order, with one read for
// each of them. It is true of one moment only: good for people, metrics and
// tools, not for deciding whether to write.
func (m *Mutex) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return m.q.Contenders(ctx)
}

// Path returns the lock's path.
func (m *Mutex) Path() string { return m.q.Path() }

// Key implements recipes.Lockable.
func (m *Mutex) Key() string { return m.q.Key() }
