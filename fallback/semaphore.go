package fallback

import (
	"context"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// MaxPermits is the largest size of a semaphore, as that of package recipes/semaphore.
// Whoever counts something finer, such as bytes, takes a larger unit.
const MaxPermits = 1 << 14

// A Semaphore has a number of permits, its size. It holds nothing itself: it may be
// shared by any number of goroutines, and each call is a contender of its own. It has the
// methods of the one in package recipes/semaphore, but for Resize.
//
// # Order
//
// Permits are given strictly in order of arrival: nobody overtakes. A request for many
// that must wait for more permits holds up all who come later, also those who ask for
// few and could be served. So nobody starves, and permits may be idle for as long as a
// large request collects them.
//
// # What can be lost
//
// The permits of each holder have a time to live of their own, by the server's clock,
// which its client renews: those of one that died come back by themselves, whatever the
// others do. What package fallback says of failovers is true of every hold: for a while,
// more may be held than the size.
//
// # Slots
//
// A grant has slots, [recipes.Grant.Slots]: as many as permits were asked for, each from
// 0 to size-1, the lowest that are free. No two live grants have the same. So a slot can
// name a worker, a port or a shard.
//
// # Tokens
//
// Tokens rise in order of arrival. But as several grants are live at a time, a resource
// that refuses every token below the largest it has seen would refuse holders in good
// standing. What a token fences is a slot: of two grants that had the same slot, the
// later has the larger token.
//
// # Size
//
// The size is stored while anybody holds permits or waits for some. A client made with
// another gets recipes.ErrConflict meanwhile. So to change it, let the semaphore drain.
//
// # Costs
//
// A free permit takes one round trip with one command, and so does the release. A waiter
// sends one command to queue, one each third of the [WaiterTimeout], and none when its
// turn comes. On the server, a hold takes some 200 bytes, and a script time that grows
// with the logarithm of the number of holds, and with the permits that it moves.
type Semaphore struct {
	l    *lock
	size int
}

const leasing = "lease"

var semKind = roomKind("semaphore", true, func(h, other *hold) bool {
	for _, slot := range h.further {
		for _, theirs := range other.further {
			if slot == theirs {
				return true
			}
		}
	}
	return false
})

// NewSemaphore returns the semaphore of that size with that key: 1 to 1024 bytes of any
// kind. It sends nothing; a nil client, a bad key, a size below 1 or above [MaxPermits],
// or a bad option is an error that matches [recipes.ErrInvalid]. Options: those of
// package recipes, and [TTL], [FixedLease], [WaiterTimeout], [WaitReplicas].
//
// recipes.LockDelay is refused, and one of the client's defaults does not count: it is
// for a resource that one uses at a time. Under recipes.Reentrant a nested grant shares
// the permits and slots of the outer one and takes none of its own; a nested request for
// more than the outer has fails with recipes.ErrDeadlock.
func NewSemaphore(c *Client, key string, size int, opts ...recipes.Option) (*Semaphore, error) {
	l, err := newLock(c, semKind, key, opts, anyLock)
	if err != nil {
		return nil, err
	}
	if size < 1 || size > MaxPermits {
		return nil, fmt.Errorf("%w: size %d: want 1 to %d permits", recipes.ErrInvalid, size, MaxPermits)
	}
	if given, _ := settle(opts, &config{}, anyLock); given.LockDelay > 0 {
		return nil, fmt.Errorf("%w: a semaphore has no LockDelay", recipes.ErrInvalid)
	}
	l.set.LockDelay = 0
	return &Semaphore{l, size}, nil
}

// Acquire is AcquireN for one permit.
func (s *Semaphore) Acquire(ctx context.Context) (*recipes.Grant, error) {
	return s.AcquireN(ctx, 1)
}

// AcquireN waits its turn, in order of arrival, until n permits are free, and takes them
// all at once: it never has some while it waits for the rest, so clients that each take
// several can't block each other. ctx bounds the wait, never the hold. If it has ended,
// on entry or when the turn comes, AcquireN fails, also where permits are free, and
// promptly, whatever the Redis client is doing. An AcquireN that fails leaves nothing
// behind; what can't be known at that moment is seen to in the background.
//
// If the server is not available, AcquireN tries again until ctx ends. If its place in
// line is lost, since nobody heard of it for the [WaiterTimeout] or it was removed, it
// queues again at the tail, unless recipes.FailOnLoss was given.
//
// Errors, inside a *recipes.Error: context.Cause(ctx); recipes.ErrInvalid (n below 1, or
// above the size: nothing was sent), ErrConflict (the key holds something else, or has
// another size now), ErrDeadlock (ctx comes from a live grant of this semaphore),
// ErrPermission, ErrSessionClosed; [ErrNotReplicated].
func (s *Semaphore) AcquireN(ctx context.Context, n int) (*recipes.Grant, error) {
	return s.acquire(ctx, "acquire", n, false)
}

// TryAcquire is TryAcquireN for one permit.
func (s *Semaphore) TryAcquire(ctx context.Context) (*recipes.Grant, error) {
	return s.TryAcquireN(ctx, 1)
}

// TryAcquireN returns the grant if n permits are free and nobody waits, and
// recipes.ErrBusy otherwise. A busy semaphore is found busy without writing anything. It
// blocks only for as long as the server takes to answer, which ctx bounds. Other errors
// are those of AcquireN.
func (s *Semaphore) TryAcquireN(ctx context.Context, n int) (*recipes.Grant, error) {
	return s.acquire(ctx, "tryacquire", n, true)
}

func (s *Semaphore) acquire(ctx context.Context, op string, n int, try bool) (*recipes.Grant, error) {
	g, err := s.acquireN(ctx, n, try)
	if err != nil {
		return nil, s.l.fail(op, err)
	}
	return g, nil
}

func (s *Semaphore) acquireN(ctx context.Context, n int, try bool) (*recipes.Grant, error) {
	if ctx.Err() == nil && (n < 1 || n > s.size) {
		return nil, fmt.Errorf("%w: %d permits: want 1 to %d", recipes.ErrInvalid, n, s.size)
	}
	g, err := s.l.enter(ctx)
	if err != nil {
		return nil, err
	}
	if g == nil {
		defer s.l.leave()
		return s.l.acquireDirectly(ctx, semKind.part(leasing, n, s.size), try)
	}
	if has := len(g.Slots()); has < n {
		g.Release(ctx)
		return nil, fmt.Errorf("%w: it has %d permits, and asks for %d", recipes.ErrDeadlock, has, n)
	}
	return g, nil
}

// Contenders lists the holders and the waiters in order of arrival, with one request. It
// is true of one moment only: good for people, metrics and tools, not for deciding
// whether to write.
func (s *Semaphore) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	list, err := s.l.contenders(ctx)
	if err != nil {
		return nil, s.l.fail("contenders", err)
	}
	return list, nil
}

// Permits returns the taking of n permits as a lock, for [recipes.All].
func (s *Semaphore) Permits(n int) recipes.Lockable { return permits{s, n} }

type permits struct {
	s *Semaphore
	n int
}

// Lock implements recipes.Lockable.
func (p permits) Lock(ctx context.Context) (*recipes.Grant, error) { return p.s.AcquireN(ctx, p.n) }

// Key implements recipes.Lockable.
func (p permits) Key() string { return p.s.l.key() }

// Path returns the key as it was given.
func (s *Semaphore) Path() string { return s.l.name }
