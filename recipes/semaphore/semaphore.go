// Package semaphore is a semaphore on ZooKeeper: a lock that up to N hold at a
// time, strictly in order of arrival, with slots that can name workers.
package semaphore

import (
	"context"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// MaxSize is the largest size of a semaphore. Whoever counts something finer, such
// as bytes, takes a larger unit.
const MaxSize = queue.MaxSize

// A Semaphore has a number of permits, its size, at one path. It holds nothing
// itself: it may be shared by any number of goroutines, each call is a contender of
// its own, and it goes on working when the session behind it is lost and replaced.
//
// # Order
//
// Permits are given strictly in order of arrival: nobody overtakes. A request for
// many that must wait for more permits holds up all who come later, also those who
// ask for few and could be served. So nobody starves, and permits may be idle for
// as long as a large request collects them.
//
// # Slots
//
// A grant has slots, [recipes.Grant.Slots]: as many as permits were asked for, each
// from 0 to size-1, the lowest that are free. No two live grants have the same. So a
// slot can name a worker, a port or a shard.
//
// # Tokens
//
// Tokens rise in order of arrival. But as several grants are live at a time, a
// resource that refuses every token below the largest it has seen would refuse
// holders in good standing. What a token fences is a slot: of two grants that had
// the same slot, the later has the larger token. A resource that belongs to a slot,
// or remembers the largest token of each, is safe even from a holder that was
// stopped and acts late.
//
// # Size
//
// The size is stored with the semaphore by whoever uses it first. A client made
// with another gets recipes.ErrConflict before it queues. [Semaphore.Resize]
// changes it on purpose.
//
// # Cost
//
// A free permit takes two round trips: the node is made and the record is read, then
// slots are written to both; a release is one request. A contender that waits
// watches the one before it only, and is woken once, when that one is admitted or
// gives up. Then it is the first in line, the only one to watch the holders: that
// takes one request for each of them, all at once, in one round trip. A release
// wakes the first in line and nobody else; those who watched the same holder when
// they were first get an event that they ignore, since a watch can't be taken back.
// So a hand-over costs up to nine requests and one for each holder, however many
// wait; names are listed only where a contender died or gave up, or where there are
// few of them.
//
// # What it does not do
//
// It does not share permits with the semaphores of Curator, kazoo or Consul, whose
// nodes are different: don't use one path for both.
type Semaphore struct{ q *queue.Queue }

var contender = queue.Keyword{Text: "lease-", Kind: "lease", Alone: true}

var recipe = queue.Recipe{
	Name:     "semaphore",
	Keywords: []queue.Keyword{contender},
	Foreign:  []queue.Keyword{{Text: "lock-"}, {Text: "__lock__"}, {Text: "__READ__"}, {Text: "__WRIT__"}},
	Blocks:   func(other, self queue.Node) bool { return true },
}

// New returns the semaphore of that size at path, which is taken below the session's
// chroot. The path's node is made when it is first needed, as a container, and
// vanishes by itself when it is no longer used. New sends nothing. A nil session, a
// bad path, a size below 1 or above [MaxSize], or an option that can't be right is
// an error that matches recipes.ErrInvalid.
//
// The options are those of all locks, but for recipes.LockDelay, which is refused:
// it is for a resource that one uses at a time. Here others go on using it anyway,
// and what is fenced is a slot, by the token. Under recipes.Reentrant a nested grant
// shares the permits and slots of the outer one and takes none of its own; a nested
// request for more than the outer has fails with recipes.ErrDeadlock.
func New(s *session.Session, path string, size int, opts ...recipes.Option) (*Semaphore, error) {
	set, err := recipes.NewSettings(opts, nil)
	if err != nil {
		return nil, err
	}
	if set.LockDelay > 0 {
		return nil, fmt.Errorf("lockkeeper: semaphore: %w: a semaphore has no LockDelay", recipes.ErrInvalid)
	}
	q, err := queue.NewSized(s, path, recipe, size, set)
	if err != nil {
		return nil, err
	}
	return &Semaphore{q}, nil
}

// Acquire is AcquireN for one permit.
func (s *Semaphore) Acquire(ctx context.Context) (*recipes.Grant, error) {
	return s.AcquireN(ctx, 1)
}

// AcquireN waits its turn, in order of arrival, until n permits are free, and takes
// them all at once: it never has some while it waits for the rest, so clients that
// each take several can't block each other. ctx bounds the wait, never the hold. If
// it has ended, on entry or when the turn comes, AcquireN fails, also where permits
// are free. An AcquireN that fails leaves nothing behind; where the connection is
// down at that moment, that is seen to in the background.
//
// If the session is lost while it waits, AcquireN queues again, at the tail, unless
// the option recipes.FailOnLoss was given. The permits of a session that died come
// back when the ensemble removes its nodes.
//
// Errors, inside a *recipes.Error: context.Cause(ctx); recipes.ErrInvalid (n below 1,
// or above the size as this client knows it: nothing was sent); ErrConflict (another
// recipe's path, another size, or the size was reduced below n, which a waiter
// learns when its turn comes at the latest); ErrDeadlock (ctx comes from a live grant of this
// semaphore), ErrPermission, ErrExhausted, ErrSessionClosed.
func (s *Semaphore) AcquireN(ctx context.Context, n int) (*recipes.Grant, error) {
	return s.q.AcquireN(ctx, contender, n, false)
}

// TryAcquire is TryAcquireN for one permit.
func (s *Semaphore) TryAcquire(ctx context.Context) (*recipes.Grant, error) {
	return s.TryAcquireN(ctx, 1)
}

// TryAcquireN returns the grant if n permits are free and nobody waits for them, and
// recipes.ErrBusy otherwise. A busy semaphore is found busy without writing
// anything. It blocks for as long as the ensemble takes to answer, and where others
// are about to take permits that suffice for all, for as long as they take, but at
// most a second for each; ctx bounds both. Other errors are those of AcquireN.
func (s *Semaphore) TryAcquireN(ctx context.Context, n int) (*recipes.Grant, error) {
	return s.q.AcquireN(ctx, contender, n, true)
}

// Resize changes the size for everybody. It needs no permit. A larger size admits
// waiters at once. A smaller one takes nothing from those who hold: they finish, and
// nobody is admitted until there is room; a waiter that asks for more than the new
// size fails with recipes.ErrConflict, when its turn comes at the latest.
//
// The clients that have used the semaphore before the change follow it: that they
// were made with another size is no mistake of theirs. A client that uses it for the
// first time afterwards must be made with the new size, or gets ErrConflict; so
// change the configuration as well. This Semaphore follows, whatever size it was
// made with: an operator's tool need not know the old size.
//
// The change outlasts times when nobody uses the semaphore: from the first one on,
// the path's node is kept for good, by a child named "resized". Who wants to forget
// the size removes both.
//
// It takes two reads and one committed write, and blocks until ctx ends, which
// leaves open whether the size was changed. If several change it at the same time,
// one of them comes last. Errors, inside a *recipes.Error: context.Cause(ctx);
// recipes.ErrInvalid (size below 1 or above [MaxSize]: nothing was sent),
// ErrConflict (another recipe's path), ErrPermission, ErrSessionClosed.
func (s *Semaphore) Resize(ctx context.Context, size int) error { return s.q.Resize(ctx, size) }

// Contenders lists the holders and the waiters in order of arrival, with one read for
// each of them. It is true of one moment only: good for people, metrics and tools,
// not for deciding whether to write.
func (s *Semaphore) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return s.q.Contenders(ctx)
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
func (p permits) Key() string { return p.s.q.Key() }

// Path returns the semaphore's path.
func (s *Semaphore) Path() string { return s.q.Path() }
