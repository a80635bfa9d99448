package fallback

import (
	"context"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A Mutex is an exclusive lock. It holds nothing itself: it may be shared by any number
// of goroutines, and each call is a contender of its own. It excludes, and is excluded
// by, every Mutex with the same key of clients with the same Prefix on the same
// service. It has the methods of the one in package recipes/mutex.
type Mutex struct{ l *lock }

var exclusive = want{mode: "lock"}

var mutexKind = &kind{
	name:     "mutex",
	suffixes: []string{mainKey, tokenKey, "mutex-queue", "mutex-alive"},
	renewed:  []int{0},
	acquire:  load("line", "mutex", "mutex_acquire"),
	leave:    load("line", "mutex", "mutex_leave"),
	renew:    load("mutex_renew"),
	list:     load("line", "mutex", "mutex_list"),
	excludes: func(h, other *hold) bool { return true },
}

// NewMutex returns the lock with that key: 1 to 1024 bytes of any kind. It sends
// nothing; a nil client, a bad key or option is an error that matches
// [recipes.ErrInvalid]. Options: those of package recipes, and [TTL], [FixedLease],
// [WaiterTimeout], [Passes], [WaitReplicas].
func NewMutex(c *Client, key string, opts ...recipes.Option) (*Mutex, error) {
	l, err := newLock(c, mutexKind, key, opts, anyLock, mutexOnly)
	if err != nil {
		return nil, err
	}
	return &Mutex{l}, nil
}

// Lock waits its turn and returns the grant. ctx bounds the wait, never the hold: once
// Lock has returned, the grant lasts until Release or revocation. If ctx has ended, on
// entry or when the turn comes, Lock fails, also where the lock is free, and promptly,
// whatever the Redis client is doing. A Lock that fails leaves nothing behind; what
// can't be known at that moment is seen to in the background.
//
// Clients come in the order in which they queued on the server. Goroutines of one
// client queue in the process, in order of arrival, and may pass the lock on before
// those of others come in: see [Passes].
//
// If the server is not available, Lock tries again until ctx ends. If its place in line
// is lost, since nobody heard of it for the [WaiterTimeout] or it was removed, it queues
// again at the tail, unless recipes.FailOnLoss was given.
//
// An uncontended Lock takes one round trip with one command, and so does the release. A
// waiter sends one command to queue, one each third of the WaiterTimeout, and none when
// its turn comes: the release of the one before says so.
//
// Errors, inside a *recipes.Error: context.Cause(ctx); recipes.ErrDeadlock (ctx comes
// from a live grant of this lock), ErrConflict (the key holds something else, which is
// left alone), ErrPermission, ErrSessionClosed; [ErrNotReplicated].
func (m *Mutex) Lock(ctx context.Context) (*recipes.Grant, error) {
	return m.acquire(ctx, "lock", false)
}

// TryLock returns the grant if nobody is ahead, and recipes.ErrBusy otherwise. A busy
// lock is found busy without writing anything. It blocks only for as long as the server
// takes to answer, which ctx bounds.
func (m *Mutex) TryLock(ctx context.Context) (*recipes.Grant, error) {
	return m.acquire(ctx, "trylock", true)
}

func (m *Mutex) acquire(ctx context.Context, op string, try bool) (*recipes.Grant, error) {
	g, err := m.l.enter(ctx)
	if err == nil && g == nil {
		defer m.l.leave()
		if m.l.cfg.passes == 0 {
			g, err = m.l.acquireDirectly(ctx, exclusive, try)
		} else {
			g, err = m.l.acquireThrough(ctx, exclusive, try)
		}
	}
	if err != nil {
		return nil, m.l.fail(op, err)
	}
	return g, nil
}

// Path returns the key as it was given.
func (m *Mutex) Path() string { return m.l.name }

// Key implements recipes.Lockable.
func (m *Mutex) Key() string { return m.l.key() }
