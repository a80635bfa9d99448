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

// enqueueTries bounds how often a directory may vanish between our making it and
// our use of it.
const enqueueTries = 16

// errMisplaced: the node is in a directory that was made anew since we learned of
// it, or the directory is gone again.
var errMisplaced = errors.New("the lock directory was removed meanwhile")

// enqueue makes the contender's node and reads what tells whether it is first.
func (q *Queue) enqueue(ctx context.Context, life *session.Life, b Bid) (*Place, error) {
	q.meet(life)
	for range enqueueTries {
		dir, err := q.directory(ctx, life, b.Slots)
		if err != nil {
			return nil, err
		}
		if dir.next >= seqLimit {
			if err := q.renew(ctx, life); err != nil {
				return nil, err
			}
			continue
		}
		p := &Place{q: q, life: life, prefix: prefix(dir.czxid, b.Keyword.Text), czxid: dir.czxid, bid: b, ticket: q.ticket(b)}
		node, err := life.CreateSequential(ctx, q.path+"/"+p.prefix, p.ticket.encode())
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
		err = p.settle(ctx, node)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, errPlaceTaken) {
			life.Remove(node.Path, nil, func(error) {})
		}
		if !errors.Is(err, errMisplaced) {
			return nil, err
		}
		q.forget()
	}
	return nil, fmt.Errorf("%w, %d times in a row", errMisplaced, enqueueTries)
}

var errWentBack = fmt.Errorf("%w: the counter has gone back", recipes.ErrExhausted)

// settle takes in what came of the creation.
func (p *Place) settle(ctx context.Context, made *session.Created) error {
	node, good := parse(strings.TrimPrefix(made.Path, p.q.path+"/"), p.q.recipe.Keywords)
	if !good {
		return fmt.Errorf("the server named a contender %q", made.Path)
	}
	p.node, p.own = node, made.Stat
	err := p.takeRecord(made.Parent, made.ParentStat)
	switch {
	case errors.Is(err, errPlaceLost):
		return errMisplaced // removed under our hands: once more
	case err != nil:
		return err
	case node.Seq >= seqLimit:
		return recipes.ErrExhausted
	case p.record.Released >= node.Seq:
		// Later ones have come and gone: either the own node was removed, or the
		// counter has gone back, as some servers' does when the leader changes, and
		// nobody can tell who came first.
		if err := p.prove(ctx); errors.Is(err, errPlaceLost) {
			return fmt.Errorf("%w: %w", errMisplaced, err)
		} else if err != nil {
			return err
		}
		return errWentBack
	}
	return nil
}
