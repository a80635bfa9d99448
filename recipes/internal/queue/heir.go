package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A holder may name an heir: a waiter that is to come next although others stand
// before it. Tokens are given with the places, so it can't simply pass them.
// Instead each of them, when its turn comes and the heir is still there, leaves
// as if it had held and queues again at the tail; the heir's number stays in the
// record until somebody else has held. Those who leave do so once for each time
// that an heir is named, since afterwards they are behind it.

// errYielded: the place was given up for the sake of an heir.
var errYielded = errors.New("gave way to a named successor")

// giveWay leaves if another was named and still stands in the queue. Its caller
// is first in line, and has read the record since.
func (p *Place) giveWay(ctx context.Context, try bool) error {
	if p.record.Heir <= p.node.Seq {
		return nil
	}
	heir, err := p.life.Exists(ctx, p.q.path+"/"+nameAt(p.prefix, p.record.Heir))
	if err != nil || heir == nil {
		return err
	}
	if try {
		return recipes.ErrBusy
	}
	gone := make(chan error, 1)
	p.left = true
	p.life.Remove(p.path(), p.releaseOps(p.record.Heir, 0), func(err error) { gone <- err })
	select { // never in line twice
	case err := <-gone:
		if errors.Is(err, zk.ErrNoNode) { // removed by somebody, just before
			err = errPlaceLost
		}
		return cmp.Or(err, errYielded)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ReleaseTo releases g, and names the contender with this node's name as the one
// to come next. It fails with ErrInvalid, and does nothing, if that is no name of
// a contender of q. One that is not in line any more is nobody's heir.
func (q *Queue) ReleaseTo(ctx context.Context, g *recipes.Grant, name string) error {
	h, ok := recipes.HoldOf(g).(*hold)
	n, good := parse(name, q.recipe.Keywords)
	if !ok || !good {
		return q.fail("release", fmt.Errorf("%w: %q is no contender's: want the ID of a recipes.Contender of this path", recipes.ErrInvalid, name))
	}
	if n.Name == nameAt(h.p.prefix, n.Seq) { // of this directory
		h.mu.Lock()
		h.heir = n.Seq
		h.mu.Unlock()
	}
	return g.Release(ctx)
}
