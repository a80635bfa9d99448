// Package rwlock is a read/write lock on ZooKeeper: readers share it, a writer has
// it alone. It is strongly consistent, fair in order of arrival, with fencing
// tokens, and revoked by our own clock before the ensemble can give it to another.
//
// It is the shared lock of the ZooKeeper recipes (Hunt et al., 2010): all queue in
// one line, a reader waits for the nearest writer before it and for nobody else, a
// writer for whoever stands just before it. So no reader waits for a writer that
// came later, and no writer for a reader that came later: neither side starves.
// The release of a writer wakes all readers that waited for it at once; that of a
// reader wakes at most one writer.
//
// # Downgrade, not upgrade
//
// [RWLock.RLock] under a context from a live write grant is granted at once, and
// outlives the write grant: whoever has written can go on reading what it wrote,
// and let other readers in, without anybody writing in between. The other way
// round, [RWLock.Lock] under a context from a read grant fails with
// recipes.ErrUpgrade at once: two readers that both waited to write would wait for
// each other.
//
// # Tokens
//
// A writer's token is larger than those of all grants before it, of readers and
// writers. A reader's is larger than those of all writers before it and smaller
// than those of all writers after it; under a writer, it is the writer's own. Among
// readers that hold at the same time tokens say nothing: they come and go in any
// order. So a resource that is written under this lock should remember the largest
// token of a writer, and compare with that what readers and writers bring: equal or
// larger is good.
//
// # Lock delay
//
// The option recipes.LockDelay counts for writers: it lets what a dead holder had
// sent arrive, and a reader sends nothing that could do harm. All wait for it,
// readers and writers. After a reader's death there is no delay.
package rwlock

import (
	"context"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// An RWLock is a read/write lock at one path. It holds nothing itself: it may be
// shared by any number of goroutines, each call is a contender of its own, and it
// goes on working when the session behind it is lost and replaced.
//
// It excludes, and is excluded by, every RWLock on the same path in whatever
// process, and Apache Curator's InterProcessReadWriteLock. (Curator's own
// downgrade lets a writer pass that queued in between; ours doesn't.)
//
// An RWLock is a recipes.Lockable for its write side; [RWLock.Reader] is one for
// the read side.
type RWLock struct{ q *queue.Queue }

var (
	write = queue.Keyword{Text: "__WRIT__", Kind: "write", Alone: true}
	read  = queue.Keyword{Text: "__READ__", Kind: "read"}
)

var recipe = queue.Recipe{
	Name:     "rwlock",
	Keywords: []queue.Keyword{write, read},
	Foreign:  []queue.Keyword{{Text: "lock-"}, {Text: "__lock__"}, {Text: "__rlock__"}},
	Blocks:   blocks,
}

// blocks: of two, one at least of them writing, the earlier is in the way of the
// later, unless that was let in under it.
func blocks(other, self queue.Node) bool {
	return (other.Alone || self.Alone) && !queue.Shares(other, self)
}

// New returns the lock at path, which is taken below the session's chroot. The
// path's node is made when it is first needed, as a container, and vanishes by
// itself when it is no longer used. New sends nothing; a nil session, a bad path
// or option is an error that matches recipes.ErrInvalid. Options count for both
// sides, recipes.LockDelay for writers only.
func New(s *session.Session, path string, opts ...recipes.Option) (*RWLock, error) {
	set, err := recipes.NewSettings(opts, nil)
	if err != nil {
		return nil, err
	}
	q, err := queue.New(s, path, recipe, set)
	if err != nil {
		return nil, err
	}
	return &RWLock{q}, nil
}

// Lock waits until everybody who came before has gone, and returns the grant to
// write. ctx bounds the wait, never the hold: once Lock has returned, the grant
// lasts until Release or revocation. If ctx has ended, on entry or when the turn
// comes, Lock fails, also where the lock is free. A Lock that fails leaves nothing
// behind; where the connection is down at that moment, that is seen to in the
// background.
//
// If the session is lost while it waits, Lock queues again, at the tail, unless
// the option recipes.FailOnLoss was given.
//
// An uncontended Lock takes one round trip, committed by the quorum; where the path has
// to be made first, a few more. A hand-over from writer to writer costs the same
// whatever the number of waiters. Behind n readers, Lock is woken at most n times, with
// two requests each time, and lists the queue at most log n times.
//
// Errors, inside a *recipes.Error: context.Cause(ctx); recipes.ErrUpgrade (ctx
// comes from a live read grant of this lock), ErrDeadlock (from a live write grant;
// with the option recipes.Reentrant it is nested instead), ErrConflict,
// ErrPermission, ErrExhausted, ErrSessionClosed.
func (l *RWLock) Lock(ctx context.Context) (*recipes.Grant, error) {
	return l.q.Acquire(ctx, write, false)
}

// TryLock returns the grant to write if nobody is ahead, and recipes.ErrBusy
// otherwise. A busy lock is found busy without writing anything. It blocks only for
// as long as the ensemble takes to answer, which ctx bounds.
func (l *RWLock) TryLock(ctx context.Context) (*recipes.Grant, error) {
	return l.q.Acquire(ctx, write, true)
}

// RLock waits until every writer who came before has gone, and returns the grant
// to read. Readers hold at the same time. What is said of ctx, of failing and of
// lost sessions at Lock is true of RLock.
//
// Under a context from a live write grant of this lock, RLock waits for nobody:
// the grant is an additional one, on the session of the write grant and with its
// token; each ends by itself. Once the write grant has been released, other
// readers get in, and writers wait for the reader.
//
// An uncontended RLock takes one round trip, committed by the quorum; among other
// contenders, one more, which lists them.
//
// Errors are those of Lock, except for ErrUpgrade; ErrDeadlock is for a context from
// a live read grant.
func (l *RWLock) RLock(ctx context.Context) (*recipes.Grant, error) {
	return l.q.Acquire(ctx, read, false)
}

// TryRLock returns the grant to read if no writer is ahead, holding or waiting, and
// recipes.ErrBusy otherwise. A busy lock is found busy without writing anything. It
// blocks only for as long as the ensemble takes to answer, which ctx bounds.
func (l *RWLock) TryRLock(ctx context.Context) (*recipes.Grant, error) {
	return l.q.Acquire(ctx, read, true)
}

// Contenders lists holders and waiters in queue order, with one read for each of
// them. It is true of one moment only: good for people, metrics and tools, not for
// deciding whether to write.
func (l *RWLock) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return l.q.Contenders(ctx)
}

// Path returns the lock's path.
func (l *RWLock) Path() string { return l.q.Path() }

// Key implements recipes.Lockable.
func (l *RWLock) Key() string { return l.q.Key() }

// Reader returns the read side as a lock for recipes.All and the like: its Lock is
// RLock. Its key is that of the RWLock, since one call chain can't wait for both.
func (l *RWLock) Reader() recipes.Lockable { return reader{l} }

type reader struct{ l *RWLock }

func (r reader) Lock(ctx context.Context) (*recipes.Grant, error) { return r.l.RLock(ctx) }
func (r reader) Key() string                                      { return r.l.Key() }
