package fallback

import (
	"context"
	"errors"
	"math"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// An RWLock is a read/write lock: readers share it, a writer has it alone. It holds
// nothing itself: it may be shared by any number of goroutines, and each call is a
// contender of its own. It excludes, and is excluded by, every RWLock with the same key
// of clients with the same [Prefix] on the same service. It has the methods of the one
// in package recipes/rwlock.
//
// # Order
//
// All stand in one line on the server, those of one process, too. A reader waits for the
// writers that came before it and for nobody else, a writer for all that came before it:
// so neither side starves. When a writer goes, all readers up to the next writer are
// granted by the same script.
//
// # What can be lost
//
// Each hold has a time to live of its own, by the server's clock, which its own client
// renews. That of a reader that died runs out whatever other readers do, and a writer
// gets in when the last one that lives has gone. What package fallback says of
// failovers is true of every hold.
//
// # Downgrade, not upgrade
//
// [RWLock.RLock] under a context from a live write grant is granted at once, and
// outlives the write grant: whoever has written can go on reading what it wrote, and let
// other readers in, without anybody writing in between. The other way round,
// [RWLock.Lock] under a context from a read grant fails with recipes.ErrUpgrade at once.
//
// # Tokens
//
// A writer's token is larger than those of all grants before it. A reader's is larger
// than those of all writers before it and smaller than those of all writers after it;
// under a writer, it is the writer's own. So a resource that is written under this lock
// should remember the largest token of a writer, and compare with that what readers and
// writers bring: equal or larger is good.
//
// # Lock delay
//
// The option recipes.LockDelay counts for writers: it lets what a dead holder had sent
// arrive, and a reader sends nothing that could do harm. All wait for it.
//
// # Costs
//
// An uncontended Lock or RLock takes one round trip with one command, and so does the
// release. A waiter sends one command to queue, one each third of the [WaiterTimeout],
// and none when its turn comes. A writer that releases publishes one message for each
// reader that it lets in. On the server, a hold takes some 200 bytes, and a script time
// that grows with the logarithm of the number of holds.
type RWLock struct{ writer, reader *lock }

const (
	reading = "read"
	writing = "write"
)

var rwKind = roomKind("rwlock", false, func(h, other *hold) bool {
	// Whoever was let in under a writer came while that held, and maybe still does.
	return h.want.mode == writing || other.want.mode == writing && h.want.under == ""
})

var (
	toWrite = rwKind.part(writing, math.MaxInt32, math.MaxInt32)
	toRead  = rwKind.part(reading, 1, math.MaxInt32)
)

// NewRWLock returns the lock with that key: 1 to 1024 bytes of any kind. It sends
// nothing; a nil client, a bad key or option is an error that matches
// [recipes.ErrInvalid]. Options: those of package recipes, and [TTL], [FixedLease],
// [WaiterTimeout], [WaitReplicas]. They count for both sides, recipes.LockDelay for
// writers only.
func NewRWLock(c *Client, key string, opts ...recipes.Option) (*RWLock, error) {
	writer, err := newLock(c, rwKind, key, opts, anyLock)
	if err != nil {
		return nil, err
	}
	reader := *writer
	reader.set.LockDelay = 0
	return &RWLock{writer, &reader}, nil
}

// Lock waits until everybody who came before has gone, and returns the grant to write.
// ctx bounds the wait, never the hold: once Lock has returned, the grant lasts until
// Release or revocation. If ctx has ended, on entry or when the turn comes, Lock fails,
// also where the lock is free, and promptly, whatever the Redis client is doing. A Lock
// that fails leaves nothing behind; what can't be known at that moment is seen to in the
// background.
//
// If the server is not available, Lock tries again until ctx ends. If its place in line
// is lost, since nobody heard of it for the [WaiterTimeout] or it was removed, it queues
// again at the tail, unless recipes.FailOnLoss was given.
//
// Errors, inside a *recipes.Error: context.Cause(ctx); recipes.ErrUpgrade (ctx comes
// from a live read grant of this lock), ErrDeadlock (from a live write grant; with the
// option recipes.Reentrant it is nested instead), ErrConflict (the key holds something
// else, which is left alone), ErrPermission, ErrSessionClosed; [ErrNotReplicated].
func (l *RWLock) Lock(ctx context.Context) (*recipes.Grant, error) {
	return l.write(ctx, "lock", false)
}

// TryLock returns the grant to write if nobody is ahead, and recipes.ErrBusy otherwise. A
// busy lock is found busy without writing anything. It blocks only for as long as the
// server takes to answer, which ctx bounds.
func (l *RWLock) TryLock(ctx context.Context) (*recipes.Grant, error) {
	return l.write(ctx, "trylock", true)
}

// RLock waits until every writer who came before has gone, and returns the grant to
// read. Readers hold at the same time. What is said of ctx, of failing and of lost places
// at Lock is true of RLock.
//
// Under a context from a live write grant of this lock, RLock waits for nobody: the
// grant is an additional one, with a time to live of its own and the token of the write
// grant; each ends by itself. Once the write grant has been released, other readers get
// in, and writers wait for the reader.
//
// Errors are those of Lock, except for ErrUpgrade; ErrDeadlock is for a context from a
// live read grant.
func (l *RWLock) RLock(ctx context.Context) (*recipes.Grant, error) {
	return l.read(ctx, "rlock", false)
}

// TryRLock returns the grant to read if no writer is ahead, holding or waiting, and
// recipes.ErrBusy otherwise. A busy lock is found busy without writing anything. It
// blocks only for as long as the server takes to answer, which ctx bounds.
func (l *RWLock) TryRLock(ctx context.Context) (*recipes.Grant, error) {
	return l.read(ctx, "tryrlock", true)
}

func (l *RWLock) write(ctx context.Context, op string, try bool) (*recipes.Grant, error) {
	g, err := l.writer.enter(ctx, writing)
	if err == nil && g == nil {
		defer l.writer.leave()
		if held, _ := recipes.HeldHold(ctx, l.writer.realm(), l.writer.name, reading); held != nil {
			err = recipes.ErrUpgrade
		} else {
			g, err = l.writer.acquireDirectly(ctx, toWrite, try)
		}
	}
	if err != nil {
		return nil, l.writer.fail(op, err)
	}
	return g, nil
}

func (l *RWLock) read(ctx context.Context, op string, try bool) (*recipes.Grant, error) {
	g, err := l.reader.enter(ctx, reading)
	if err == nil && g == nil {
		defer l.reader.leave()
		g, err = l.readUnder(ctx, try)
		if err == nil && g == nil {
			g, err = l.reader.acquireDirectly(ctx, toRead, try)
		}
	}
	if err != nil {
		return nil, l.reader.fail(op, err)
	}
	return g, nil
}

// readUnder returns nil, nil where ctx does not come from a live write grant.
func (l *RWLock) readUnder(ctx context.Context, try bool) (*recipes.Grant, error) {
	held, _ := recipes.HeldHold(ctx, l.reader.realm(), l.reader.name, writing)
	writer, ok := held.(*hold)
	if !ok {
		return nil, nil
	}
	g, err := l.reader.acquireDirectly(ctx, toRead.letIn(writer), try)
	if errors.Is(err, errHolderGone) {
		writer.lose(recipes.ErrNodeDeleted, true) // if it wasn't released meanwhile
		return nil, nil
	}
	return g, err
}

// Contenders lists holders and waiters in order of arrival, with one request. It is true
// of one moment only: good for people, metrics and tools, not for deciding whether to
// write.
func (l *RWLock) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	list, err := l.writer.contenders(ctx)
	if err != nil {
		return nil, l.writer.fail("contenders", err)
	}
	return list, nil
}

// Path returns the key as it was given.
func (l *RWLock) Path() string { return l.writer.name }

// Key implements recipes.Lockable.
func (l *RWLock) Key() string { return l.writer.key() }

// Reader returns the read side as a lock for recipes.All and the like: its Lock is RLock.
// Its key is that of the RWLock, since one call chain can't wait for both.
func (l *RWLock) Reader() recipes.Lockable { return reader{l} }

type reader struct{ l *RWLock }

func (r reader) Lock(ctx context.Context) (*recipes.Grant, error) { return r.l.RLock(ctx) }
func (r reader) Key() string                                      { return r.l.Key() }
