package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// MaxSize is the largest number of slots of one lock. The record of a lock whose
// every slot has a holder of its own must fit into a node, and so must the list of
// their names.
const MaxSize = 1 << 14

// The size of a lock is in its directory's record. Whoever makes the directory
// writes the size that it was given; whoever comes later with another is turned
// away. An operator can change it, and those who had agreed with the old one
// follow: their disagreement is no mistake.

// A sizing is what one Queue knows of its lock's size.
type sizing struct {
	given  int   // by the constructor; 0: a lock without slots
	seen   int   // the size that was last seen, or else given
	agreed int64 // czxid of the directory that had the right size once
}

// NewSized is New for a lock with slots, which AcquireN takes.
func NewSized(s *session.Session, path string, recipe Recipe, size int, settings recipes.Settings) (*Queue, error) {
	if size < 1 || size > MaxSize {
		return nil, fmt.Errorf("lockkeeper: %s: %w: size %d: want 1 to %d", recipe.Name, recipes.ErrInvalid, size, MaxSize)
	}
	q, err := New(s, path, recipe, settings)
	if err != nil {
		return nil, err
	}
	q.size = sizing{given: size, seen: size}
	return q, nil
}

// sized reports whether the lock has slots.
func (q *Queue) sized() bool { return q.size.given > 0 }

func (q *Queue) sizeSeen() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size.seen
}

// firstRecord is that of a directory which we make.
func (q *Queue) firstRecord() record {
	r := newRecord(q.recipe.Name)
	r.Size, r.Weight = q.size.given, q.weight
	return r
}

// agree compares the size in a record with ours, and with how many are asked for.
func (q *Queue) agree(r record, czxid int64, n int) error {
	if !q.sized() || r.Size == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.Size != q.size.given && r.Size != q.size.seen && q.size.agreed != czxid {
		return fmt.Errorf("%w: its size is %d, not %d", recipes.ErrConflict, r.Size, q.size.given)
	}
	q.size.seen, q.size.agreed = r.Size, czxid
	if n > r.Size {
		return tooLarge(n, r.Size)
	}
	return nil
}

func tooLarge(n, size int) error {
	return fmt.Errorf("%w: %d permits asked for, and its size is %d now", recipes.ErrConflict, n, size)
}

// writeSize puts a size into the record of a directory that has none.
func (q *Queue) writeSize(ctx context.Context, life *session.Life, stat *zk.Stat) error {
	_, err := life.Multi(ctx, &zk.SetDataRequest{Path: q.path, Data: q.firstRecord().encode(), Version: stat.Version})
	switch {
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode), unknownOutcome(err) && life.Err() == nil && ctx.Err() == nil:
		return nil // it is looked at again
	}
	return err
}

var errForeignData = fmt.Errorf("%w: the size is kept in the data of the path's node, and somebody else's is there", recipes.ErrConflict)

// resized is a child that keeps the server from removing a directory whose size
// was changed: the change must outlast a time when nobody is in line.
const resized = "resized"

// renewResized returns the operations by which a directory whose size was changed
// is made anew, if nobody is in it.
func (q *Queue) renewResized(ctx context.Context, life *session.Life, r record, stat *zk.Stat) ([]any, error) {
	kept, err := life.Exists(ctx, q.path+"/"+resized)
	if err != nil {
		return nil, err
	}
	if kept == nil {
		return nil, recipes.ErrExhausted // somebody is in line
	}
	fresh := newRecord(q.recipe.Name)
	fresh.Size = r.Size
	return []any{
		&zk.DeleteRequest{Path: q.path + "/" + resized, Version: -1},
		&zk.DeleteRequest{Path: q.path, Version: stat.Version},
		&zk.CreateRequest{Path: q.path, Data: fresh.encode(), Flags: zk.FlagPersistent},
		&zk.CreateRequest{Path: q.path + "/" + resized, Flags: zk.FlagPersistent},
	}, nil
}

// Resize changes the size.
func (q *Queue) Resize(ctx context.Context, size int) error {
	if size < 1 || size > MaxSize {
		return q.fail("resize", fmt.Errorf("%w: size %d: want 1 to %d", recipes.ErrInvalid, size, MaxSize))
	}
	for {
		life, err := q.sess.Life(ctx)
		if err != nil {
			return q.fail("resize", err)
		}
		done, err := q.resize(ctx, life, size)
		if done {
			return nil
		}
		if err != nil && (life.Err() == nil || ctx.Err() != nil || errors.Is(life.Err(), session.ErrClosed)) {
			return q.fail("resize", err)
		}
	}
}

// resize makes one attempt. Without an error and not done, it is to be repeated.
func (q *Queue) resize(ctx context.Context, life *session.Life, size int) (done bool, err error) {
	data, stat, err := life.Get(ctx, q.path)
	if errors.Is(err, zk.ErrNoNode) {
		r := newRecord(q.recipe.Name)
		r.Size = size
		return false, life.EnsureContainer(ctx, q.path, r.encode())
	}
	if err != nil {
		return false, err
	}
	r, err := q.checkRecord(data)
	if err != nil {
		return false, err
	}
	if r.Recipe == "" { // somebody else made it: there may be contenders of another recipe
		if _, _, err := q.nodes(ctx, life); err != nil {
			return false, err
		}
	}
	kept, err := life.Exists(ctx, q.path+"/"+resized)
	if err != nil {
		return false, err
	}
	var ops []any
	if r.Size == size && kept != nil { // unless that was read from a server that lags behind
		ops = append(ops, &zk.CheckVersionRequest{Path: q.path, Version: stat.Version})
	} else {
		r.Recipe, r.Size = q.recipe.Name, size
		ops = append(ops, &zk.SetDataRequest{Path: q.path, Data: r.encode(), Version: stat.Version})
	}
	if kept == nil {
		ops = append(ops, &zk.CreateRequest{Path: q.path + "/" + resized, Flags: zk.FlagPersistent})
	}
	_, err = life.Multi(ctx, ops...)
	switch {
	case err == nil:
		q.follow(size, stat.Czxid)
		return true, nil
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode),
		unknownOutcome(err) && life.Err() == nil && ctx.Err() == nil:
		return false, nil
	}
	return false, err
}

func (q *Queue) follow(size int, czxid int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.size.seen, q.size.agreed = size, czxid
}
