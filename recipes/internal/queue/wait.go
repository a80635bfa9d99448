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

// missesBeforeList is how many remembered contenders may turn out to be gone, one
// read each, before the directory is listed again.
const missesBeforeList = 3

// waitTurn returns nil once nobody is in the way and no lock delay runs. It does
// what decide says until then.
func (p *place) waitTurn(ctx context.Context, try bool) error {
	v := newView(p.node, -1, p.q.recipe.Blocks)
	p.believe(&v)
	fresh := true // the record is newer than the last node found gone
	misses := 0
	for {
		if !fresh {
			if err := p.readRecord(ctx); err != nil {
				return p.orLost(err)
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
				v.gone(ahead, p.seen(ahead))
				fresh = false
				if misses++; v.listed && misses >= missesBeforeList {
					v.listed, v.blind = false, true
				}
			case err != nil:
				return err
			case ahead.Seq == p.node.Seq && w.Stat.Czxid > p.own.Stat.Czxid:
				v.gone(ahead, true) // the same number, but it came after us
			case try:
				return recipes.ErrBusy
			default:
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

// seen reports whether n was there when it was last looked at.
func (p *place) seen(n Node) bool { return p.saw.Name == n.Name }

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
// of consequence, and sees to it that the own node is still there. gone is true
// if the node ahead is known to be gone though nothing was heard of it.
func (p *place) waitFor(ctx context.Context, w *session.Watch, ahead Node) (gone bool, err error) {
	poll := time.NewTimer(30*time.Second + rand.N(30*time.Second))
	defer poll.Stop()
	for {
		select {
		case <-w.Fired:
			return false, p.checkOwn(ctx)
		case <-p.own.Fired:
			if err := p.checkOwn(ctx); err != nil {
				return false, err
			}
		case <-poll.C:
			// An event that got lost must not mean a wait without end.
			stat, err := p.life.Exists(ctx, p.q.path+"/"+ahead.Name)
			if err != nil || stat == nil {
				return err == nil, err
			}
			poll.Reset(30*time.Second + rand.N(30*time.Second))
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-p.life.Done():
			return false, p.life.Err()
		}
	}
}

// checkOwn looks at the own node again if its watch has fired.
func (p *place) checkOwn(ctx context.Context) error {
	select {
	case <-p.own.Fired:
	default:
		return nil
	}
	own, err := p.life.Watch(ctx, p.path())
	if err != nil {
		return p.orLost(err)
	}
	if own.Stat.EphemeralOwner != p.life.ID() || own.Stat.Czxid != p.own.Stat.Czxid {
		return errPlaceTaken
	}
	p.own = own
	return nil
}

// orLost: without the directory or the own node, the place is lost.
func (p *place) orLost(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return errPlaceLost
	}
	return err
}
