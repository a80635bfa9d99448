package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// A place is one contender's node in the queue, until it is left or held.
type place struct {
	q       *Queue
	life    *session.Life
	node    Node
	prefix  string // of the names in this directory
	own     *session.Watch
	record  record
	written *zk.Stat // the directory's, when record was read
	ours    bool     // the record is ours to write
	saw     Node     // the contender that was last watched

	announced  bool // the record may say that we hold, with a lock delay
	announcing bool // whether it does is not known
}

func (p *place) path() string { return p.q.path + "/" + p.node.Name }

// enqueueTries bounds how often a directory may vanish between our making it and
// our use of it.
const enqueueTries = 16

// enqueue makes the contender's node and reads what tells whether it is first.
func (q *Queue) enqueue(ctx context.Context, life *session.Life, k Keyword) (*place, error) {
	for range enqueueTries {
		dir, err := q.directory(ctx, life)
		if err != nil {
			return nil, err
		}
		if dir.next >= seqLimit {
			if err := q.renew(ctx, life); err != nil {
				return nil, err
			}
			continue
		}
		prefix := prefix(dir.czxid, k.Text)
		path, err := life.CreateSequential(ctx, q.path+"/"+prefix, q.ticket())
		if errors.Is(err, zk.ErrNoNode) {
			q.forget() // reaped, or removed by somebody
			continue
		}
		if errors.Is(err, zk.ErrNodeExists) {
			return nil, errWentBack
		}
		if err != nil {
			return nil, err
		}
		p := &place{q: q, life: life, prefix: prefix}
		ok, err := p.settle(ctx, path, dir.czxid)
		if (err != nil || !ok) && !errors.Is(err, errPlaceTaken) {
			life.Remove(path, nil, func(error) {})
		}
		if err != nil || ok {
			return p, err
		}
		q.forget()
	}
	return nil, fmt.Errorf("the lock directory vanished %d times in a row", enqueueTries)
}

var errWentBack = fmt.Errorf("%w: the counter has gone back", recipes.ErrExhausted)

// directory returns what is known of the lock directory, reading or making it if
// nothing is.
func (q *Queue) directory(ctx context.Context, life *session.Life) (directory, error) {
	for range enqueueTries {
		if dir := q.known(); dir.czxid != 0 && dir.next < seqLimit {
			return dir, nil
		}
		data, stat, err := life.Get(ctx, q.path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			if err := life.EnsureContainer(ctx, q.path, newRecord(q.recipe.Name).encode()); err != nil {
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
		q.saw(stat)
		if r.Recipe == "" {
			// Somebody else made it: make sure that no other recipe is at work there.
			if _, err := q.nodes(ctx, life); err != nil {
				return directory{}, err
			}
		}
		return q.known(), nil
	}
	return directory{}, fmt.Errorf("the lock directory vanished %d times in a row", enqueueTries)
}

// containerOwner is what a server shows as the owner of a container node.
const containerOwner = -1 << 63

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
	if _, ours := parseRecord(data); !ours || stat.NumChildren > 0 {
		return recipes.ErrExhausted
	}
	_, err = life.Multi(ctx, &zk.DeleteRequest{Path: q.path, Version: stat.Version})
	switch {
	case errors.Is(err, zk.ErrNotEmpty), errors.Is(err, zk.ErrBadVersion):
		return recipes.ErrExhausted
	case err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, session.ErrOutcomeUnknown):
		return err
	}
	return nil
}

// settle reads the own node, which proves that it is ours and gives the token,
// and the directory's record, side by side. ok is false if the node is in the
// wrong place: in a directory made anew since we learned of it.
func (p *place) settle(ctx context.Context, path string, dirCzxid int64) (ok bool, err error) {
	node, good := parse(strings.TrimPrefix(path, p.q.path+"/"), p.q.recipe.Keywords)
	if !good {
		return false, fmt.Errorf("the server named a contender %q", path)
	}
	p.node = node
	recordErr := make(chan error, 1)
	go func() { recordErr <- p.readRecord(ctx) }()
	p.own, err = p.life.Watch(ctx, path)
	if rerr := <-recordErr; rerr != nil || err != nil {
		if errors.Is(err, zk.ErrNoNode) || err == nil && errors.Is(rerr, zk.ErrNoNode) {
			return false, nil // removed under our hands: once more
		}
		return false, cmpErr(err, rerr)
	}
	switch {
	case p.own.Stat.EphemeralOwner != p.life.ID():
		return false, errPlaceTaken
	case p.written.Czxid != dirCzxid:
		return false, nil
	case node.Seq >= seqLimit:
		return false, recipes.ErrExhausted
	case p.record.Released >= node.Seq:
		// Some servers' counter goes back when the leader changes: then nobody can
		// tell who came first.
		return false, cmpErr(p.checkOwn(ctx), errWentBack)
	}
	return true, nil
}

func (p *place) readRecord(ctx context.Context) error {
	data, stat, err := p.life.Get(ctx, p.q.path)
	if err != nil {
		return err
	}
	r, err := p.q.checkRecord(data)
	if err != nil {
		return err
	}
	_, p.ours = parseRecord(data)
	p.record, p.written = r.in(stat.Czxid), stat
	p.record.Recipe = p.q.recipe.Name
	p.q.saw(stat)
	return nil
}

// leave removes the node, in the background, until that is certain. One that has
// announced a lock delay leaves as if it had held, so that it is not taken for a
// holder that died.
func (p *place) leave() {
	var ops []any
	if p.announced {
		ops = p.releaseOps()
	}
	p.life.Remove(p.path(), ops, func(err error) {
		if err != nil {
			p.q.settings.Logger.Warn("a contender's node can't be removed before its session ends", "node", p.path(), "error", err)
		}
	})
}
