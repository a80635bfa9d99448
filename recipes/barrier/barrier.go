// Package barrier has two things that hold goroutines of many processes back until
// something is so, on ZooKeeper: a [Barrier], which somebody sets and removes, and
// a [Double] barrier, at which a number of members begin together and end together.
package barrier

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// A Barrier is a node at a path: while it is there, Wait waits. It may be shared by
// any number of goroutines.
type Barrier struct {
	sess *session.Session
	path string
}

// content is what the barrier's node says about itself.
const content = "lockkeeper gate"

// New returns the barrier at path, which is taken below the session's chroot. New
// sends nothing; a nil session or a bad path is an error that matches
// recipes.ErrInvalid.
func New(s *session.Session, path string) (*Barrier, error) {
	if s == nil {
		return nil, fmt.Errorf("lockkeeper: barrier: %w: the session is nil", recipes.ErrInvalid)
	}
	if err := queue.CheckPath(path); err != nil {
		return nil, fmt.Errorf("lockkeeper: barrier: %w", err)
	}
	return &Barrier{s, path}, nil
}

// Set sets the barrier, if it is not set. It belongs to nobody: it stays until
// somebody removes it, also when whoever set it is gone. The nodes above are made
// as containers where they are missing. It takes one round trip, or a few if those
// have to be made.
//
// Errors, inside a *recipes.Error: context.Cause(ctx), after which the barrier may
// be set or not; recipes.ErrConflict (something else is at the path),
// ErrPermission, ErrSessionClosed.
func (b *Barrier) Set(ctx context.Context) error {
	return b.repeat(ctx, "set", func(life *session.Life) (bool, error) {
		_, err := life.Multi(ctx, &zk.CreateRequest{Path: b.path, Data: []byte(content), Flags: zk.FlagPersistent})
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return false, life.EnsureContainer(ctx, above(b.path), nil)
		case errors.Is(err, zk.ErrNodeExists):
			data, _, err := life.Get(ctx, b.path)
			if errors.Is(err, zk.ErrNoNode) {
				return false, nil // removed just now
			}
			return err == nil, checked(data, err)
		}
		return err == nil, err
	})
}

// Remove removes the barrier, if it is set, and lets all pass who wait. It takes
// two round trips, or three if it is not set. The errors are those of Set.
func (b *Barrier) Remove(ctx context.Context) error {
	return b.repeat(ctx, "remove", func(life *session.Life) (bool, error) {
		data, stat, err := life.Get(ctx, b.path)
		if errors.Is(err, zk.ErrNoNode) {
			return b.absent(ctx, life)
		}
		if err := checked(data, err); err != nil {
			return false, err
		}
		_, err = life.Multi(ctx, &zk.DeleteRequest{Path: b.path, Version: stat.Version})
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return true, nil
		case errors.Is(err, zk.ErrNotEmpty):
			return false, fmt.Errorf("%w: there are nodes below it", recipes.ErrConflict)
		case errors.Is(err, zk.ErrBadVersion):
			return false, nil // changed just now: look again
		}
		return err == nil, err
	})
}

// Wait returns nil at the first moment at which it sees no barrier, which is at
// once where none is set; one that was set before the call is seen, whatever server we
// are connected to. It waits on over a lost session. All who wait are woken together,
// since all may pass; those in one session share one watch.
//
// Errors, inside a *recipes.Error: context.Cause(ctx); recipes.ErrConflict,
// ErrPermission, ErrSessionClosed.
func (b *Barrier) Wait(ctx context.Context) error {
	return b.repeat(ctx, "wait", func(life *session.Life) (bool, error) {
		w, err := life.Watch(ctx, b.path)
		if errors.Is(err, zk.ErrNoNode) {
			return b.absent(ctx, life)
		}
		if err != nil {
			return false, err
		}
		if err := checked(w.Data, nil); err != nil {
			return false, err
		}
		select {
		case <-w.Fired:
		case <-life.Done():
		case <-ctx.Done():
		}
		return false, nil
	})
}

// absent reports whether no barrier is set, which a server that lags behind may say of
// one that was.
func (b *Barrier) absent(ctx context.Context, life *session.Life) (bool, error) {
	if err := life.Sync(ctx, b.path); err != nil {
		return false, err
	}
	stat, err := life.Exists(ctx, b.path)
	return err == nil && stat == nil, err
}

// repeat makes attempts, with one life after the other, until one of them is done
// or fails for good.
func (b *Barrier) repeat(ctx context.Context, op string, attempt func(*session.Life) (done bool, err error)) error {
	for {
		if ctx.Err() != nil {
			return queue.Fail(op, b.path, context.Cause(ctx))
		}
		life, err := b.sess.Life(ctx)
		if err != nil {
			return queue.Fail(op, b.path, err)
		}
		done, err := attempt(life)
		lost := life.Err()
		again := lost != nil && !errors.Is(lost, session.ErrClosed) || errors.Is(err, session.ErrOutcomeUnknown)
		if done || err != nil && (!again || ctx.Err() != nil) {
			return queue.Fail(op, b.path, err)
		}
	}
}

// checked makes sure that what was read is a barrier.
func checked(data []byte, err error) error {
	if err == nil && string(data) != content {
		err = fmt.Errorf("%w: something else is there", recipes.ErrConflict)
	}
	return err
}

func above(path string) string { return path[:strings.LastIndexByte(path, '/')] }

// Path returns the barrier's path.
func (b *Barrier) Path() string { return b.path }
