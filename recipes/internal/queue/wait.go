package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

const (
	// missesBeforeList is how many remembered contenders may turn out to be gone,
	// one read each, before the directory is listed again.
	missesBeforeList = 3

	// guardAfter is how long a contender waits before it also watches its own
	// node. A watch means an event when the node is deleted, and short waits
	// shall not pay for that.
	guardAfter = 5 * time.Second

	// pollEvery, and up to as much again, is when a wait looks again although
	// nothing has happened: an event that got lost must not mean a wait without
	// end.
	pollEvery = 30 * time.Second
)

// waitTurn returns nil once nobody is in the way, no lock delay runs, and the own
// node was seen to be there. It does what decide says until then.
func (p *place) waitTurn(ctx context.Context, try bool) error {
	v := newView(p.node, -1, p.q.recipe.Blocks)
	p.believe(&v)
	fresh := true // record and own node were read after the last node was found gone
	misses := 0
	for {
		if !fresh {
			if err := p.look(ctx); err != nil {
				return err
			}
			p.believe(&v)
			fresh = true
		}
		switch step, ahead := decide(v); step {
		case grant:
			return p.sitOutDelay(ctx, try)

		case list:
			if err := p.list(ctx, &v); err != nil {
				return err
			}
			misses, fresh = 0, false

		case watch:
			if ahead.Name == "" {
				ahead.Name = nameAt(p.prefix, ahead.Seq)
			}
			w, err := p.life.Watch(ctx, p.q.path+"/"+ahead.Name)
			switch {
			case errors.Is(err, zk.ErrNoNode):
				v.gone(ahead, p.saw.Name == ahead.Name)
				fresh = false
				if misses++; v.listed && misses >= missesBeforeList {
					v.listed, v.blind = false, true
				}
				continue
			case err != nil:
				return err
			case ahead.Seq == p.node.Seq && w.Stat.Czxid > p.own.Czxid:
				v.gone(ahead, true) // the same number, but it came after us
				continue
			case try:
				return recipes.ErrBusy
			}
			p.saw = ahead
			gone, err := p.waitFor(ctx, w, ahead)
			if err != nil {
				return err
			}
			if gone {
				v.gone(ahead, true)
			}
			misses, fresh = 0, false
		}
	}
}

// believe takes in what the record says, unless there are more contenders than
// numbers were given from ours on: then one of them may have ours, or an earlier
// one, and only a list can tell.
func (p *place) believe(v *view) {
	crowd := int64(p.written.NumChildren) - p.q.known().odd
	if p.record.Holder >= 0 {
		crowd-- // the keeper of the record
	}
	if p.record.Released >= v.goneFrom-1 && crowd > nextSeq(p.written)-p.node.Seq {
		if !v.listed {
			v.blind = true
		}
		return
	}
	v.released = max(v.released, p.record.Released)
}

// list takes in who is in the directory now.
func (p *place) list(ctx context.Context, v *view) error {
	nodes, err := p.q.nodes(ctx, p.life)
	if err != nil {
		return err
	}
	if !v.list(nodes) {
		return errPlaceLost
	}
	return nil
}

// waitFor waits until something happens to the node ahead, which may be nothing
// of consequence; gone is true if the node is known to be gone though nothing was
// heard of it. In a longer wait it sees to it that the own node is still there.
func (p *place) waitFor(ctx context.Context, w *session.Watch, ahead Node) (gone bool, err error) {
	guard := time.NewTimer(guardAfter)
	defer guard.Stop()
	poll := time.NewTimer(pollEvery + rand.N(pollEvery))
	defer poll.Stop()
	for {
		var ownFired <-chan struct{}
		if p.guard != nil {
			ownFired = p.guard.Fired
		}
		select {
		case <-w.Fired:
			return false, nil
		case <-guard.C:
			if err := p.watchOwn(ctx); err != nil {
				return false, err
			}
		case <-ownFired:
			if err := p.watchOwn(ctx); err != nil {
				return false, err
			}
		case <-poll.C:
			stat, err := p.life.Exists(ctx, p.q.path+"/"+ahead.Name)
			if err != nil || stat == nil {
				return err == nil, err
			}
			poll.Reset(pollEvery + rand.N(pollEvery))
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-p.life.Done():
			return false, p.life.Err()
		}
	}
}

// watchOwn watches the own node, and fails if it is not there.
func (p *place) watchOwn(ctx context.Context) error {
	own, err := p.life.Watch(ctx, p.path())
	if errors.Is(err, zk.ErrNoNode) {
		return errPlaceLost
	}
	if err != nil {
		return err
	}
	if !p.isOwn(own.Stat) {
		return errPlaceTaken
	}
	p.guard, p.own = own, own.Stat
	return nil
}
