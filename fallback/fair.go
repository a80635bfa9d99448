package fallback

import (
	"context"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A Fair is an exclusive lock that serves strictly in order of arrival, across processes
// and within them. It holds nothing itself: it may be shared by any number of goroutines,
// and each call is a contender of its own. It has these methods of the lock in package
// recipes/fair: Lock, TryLock, Contenders, Path, Key. There are no tickets and no flows.
//
// It is a [Mutex] with [Passes](0), and the same lock as a Mutex with that key: they
// exclude each other, and goroutines of a client that uses a Mutex may pass it on among
// themselves, that many times in a row, while a Fair waits. Where order counts, let all
// use a Fair.
//
// # Order
//
// The order is that in which the server got the requests, by a sequence of its own: no
// client's clock has a part in it. Nobody passes a waiter, nor does TryLock. A waiter
// that is not heard of for the [WaiterTimeout] is dead: any number of waiters that died
// together delay the others by one WaiterTimeout at most, and one that gives up does not
// delay anybody.
//
// # Costs
//
// An uncontended Lock takes one round trip with one command, and so does the release. A
// waiter sends one command to queue, one each third of the WaiterTimeout, and none when
// its turn comes: the release of the one before says so, in one message. So a hand-over
// takes two commands, however many wait.
type Fair struct{ m *Mutex }

// NewFair returns the lock with that key: 1 to 1024 bytes of any kind. It sends nothing;
// a nil client, a bad key or option is an error that matches [recipes.ErrInvalid].
// Options: those of package recipes, and [TTL], [FixedLease], [WaiterTimeout],
// [WaitReplicas].
func NewFair(c *Client, key string, opts ...recipes.Option) (*Fair, error) {
	l, err := newLock(c, mutexKind, key, opts, anyLock)
	if err != nil {
		return nil, err
	}
	l.cfg.passes = 0
	return &Fair{&Mutex{l}}, nil
}

// Lock waits its turn and returns the grant. What is said of ctx, of failing, of lost
// places and of errors at [Mutex.Lock] is true of it.
func (f *Fair) Lock(ctx context.Context) (*recipes.Grant, error) { return f.m.Lock(ctx) }

// TryLock returns the grant if nobody is ahead, holding or waiting, and recipes.ErrBusy
// otherwise. A busy lock is found busy without writing anything. It blocks only for as
// long as the server takes to answer, which ctx bounds.
func (f *Fair) TryLock(ctx context.Context) (*recipes.Grant, error) { return f.m.TryLock(ctx) }

// Contenders lists the holder and the waiters, with one request, in the order in which
// they will be served if nobody comes or goes: the place of a contender is its index. It
// is true of one moment only.
func (f *Fair) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return f.m.Contenders(ctx)
}

// Path returns the key as it was given.
func (f *Fair) Path() string { return f.m.Path() }

// Key implements recipes.Lockable.
func (f *Fair) Key() string { return f.m.Key() }
