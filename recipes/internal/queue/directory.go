package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// A directory is what was last seen of the lock directory.
type directory struct {
	czxid int64 // 0: unknown
	next  int64 // a lower bound of the next sequence number
	odd   int64 // children of no concern to us, when it was last listed
}

func (q *Queue) known() directory {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dir
}

// note remembers what a stat of the directory tells. The server shows, in 32 bits,
// twice the number of creations less the number of children.
func (q *Queue) note(stat *zk.Stat) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dir.czxid != stat.Czxid {
		q.dir = directory{czxid: stat.Czxid}
	}
	q.dir.next = nextSeq(stat)
}

func nextSeq(stat *zk.Stat) int64 {
	return int64((uint32(stat.Cversion) + uint32(stat.NumChildren)) / 2)
}

// meet forgets what was seen in another life: time has passed since, in which the
// directory may have been removed and made anew. A contender that is made with the
// old stamp is in nobody's way, but it may have the name of one that is gone, which
// a late write that is guarded by that name would take for the old one.
func (q *Queue) meet(life *session.Life) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.life != life {
		q.life, q.dir = life, directory{}
	}
}

func (q *Queue) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dir = directory{}
}

// directory returns what is known of the lock directory, reading or making it if
// nothing is. n slots are going to be asked for.
func (q *Queue) directory(ctx context.Context, life *session.Life, n int) (directory, error) {
	for range enqueueTries {
		if dir := q.known(); dir.czxid != 0 && dir.next < seqLimit {
			return dir, nil
		}
		data, stat, err := life.Get(ctx, q.path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			if err := life.EnsureContainer(ctx, q.path, q.firstRecord().encode()); err != nil {
				return directory{}, err
			}
			continue
		case err != nil:
			return directory{}, err
		case stat.EphemeralOwner != 0 && stat.EphemeralOwner != containerOwner:
			return directory{}, fmt.Errorf("%w: it is an ephemeral node", recipes.ErrConflict)
		}
		r, err := q.checkRecord(data)
		if err != nil {
			return directory{}, err
		}
		if err := q.agree(r, stat.Czxid, n); err != nil {
			return directory{}, err
		}
		q.note(stat)
		if r.Recipe == "" {
			// Somebody else made it: make sure that no other recipe is at work there.
			if _, _, err := q.nodes(ctx, life); err != nil {
				return directory{}, err
			}
		}
		if q.sized() && r.Size == 0 {
			q.forget() // until it has a size
			if err := q.writeSize(ctx, life, stat); err != nil {
				return directory{}, err
			}
			continue
		}
		return q.known(), nil
	}
	return directory{}, fmt.Errorf("%w, %d times in a row", errMisplaced, enqueueTries)
}

// containerOwner is what a server shows as the owner of a container node.
const containerOwner = -1 << 63

// checkRecord reads a directory's data and makes sure that the path is ours to
// use.
func (q *Queue) checkRecord(data []byte) (record, error) {
	r, ours := parseRecord(data)
	if !ours && q.sized() {
		return r, errForeignData
	}
	if r.Recipe != "" && r.Recipe != q.recipe.Name {
		return r, fmt.Errorf("%w: its recipe is %s", recipes.ErrConflict, r.Recipe)
	}
	return r, nil
}

// nodes lists the contenders, in no order, with the directory's stat at that
// moment. A missing directory has none.
func (q *Queue) nodes(ctx context.Context, life *session.Life) ([]Node, *zk.Stat, error) {
	names, stat, err := life.Children(ctx, q.path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, new(zk.Stat), nil
	}
	if err != nil {
		return nil, nil, err
	}
	q.note(stat)
	var nodes []Node
	odd := 0
	for _, name := range names {
		if n, ok := parse(name, q.recipe.Keywords); ok {
			nodes = append(nodes, n)
		} else if _, other := parse(name, q.recipe.Foreign); other {
			q.forget() // so that the next one looks, too, before it writes
			return nil, nil, recipes.ErrConflict
		} else if name != keeper {
			odd++
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dir.czxid == stat.Czxid {
		q.dir.odd = int64(odd)
	}
	return nodes, stat, nil
}

// renew removes a directory whose counter is nearly used up, if it is empty and
// ours; a new one begins at zero. Tokens go on rising, and names are new.
func (q *Queue) renew(ctx context.Context, life *session.Life) error {
	data, stat, err := life.Get(ctx, q.path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	q.forget()
	if err != nil {
		return nil
	}
	r, ours := parseRecord(data)
	ops := []any{&zk.DeleteRequest{Path: q.path, Version: stat.Version}}
	if ours && stat.NumChildren == 1 {
		kept := q.renewDelayed
		if q.sized() {
			kept = q.renewResized
		}
		if ops, err = kept(ctx, life, r, stat); err != nil {
			return err
		}
		stat.NumChildren = 0
	}
	if !ours || stat.NumChildren > 0 {
		return recipes.ErrExhausted
	}
	_, err = life.Multi(ctx, ops...)
	switch {
	case errors.Is(err, zk.ErrNotEmpty), errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists):
		return recipes.ErrExhausted
	case err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, session.ErrOutcomeUnknown):
		return err
	}
	return nil
}
