package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

const (
	// missesBeforeList is how many remembered contenders may turn out to be gone,
	// one read each, before the directory is listed again. It doubles each time:
	// whoever is behind n others lists log n times, whatever the order in which
	// they leave.
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
func (p *Place) waitTurn(ctx context.Context, try bool) error {
	v := newView(p.node, -1, p.q.recipe.Blocks)
	v.mixed = p.q.recipe.mixed()
	p.believe(&v)
	if p.written.NumChildren == 1 && p.written.Pzxid == p.own.Czxid {
		v.listed = true // our creation was the last change, and we are the only one
	} else if v.mixed && p.q.recipe.lists(p.written.NumChildren) {
		v.blind = true
	}
	fresh := true  // nothing that was in the way has gone since the own node and the record were seen
	stale := false // what went may have said more in the record
	misses, limit := 0, missesBeforeList
	for {
		step, ahead := decide(v)
		if stale || step == grant && !fresh {
			if err := p.look(ctx); err != nil {
				return err
			}
			p.believe(&v)
			fresh, stale = true, false
			continue
		}
		switch step {
		case grant:
			return p.sitOutDelay(ctx, try)

		case list:
			same, err := p.list(ctx, &v)
			if err != nil {
				return err
			}
			misses, fresh = 0, same

		case watch:
			if ahead.Name == "" {
				ahead = p.computed(ahead.Seq)
			}
			w, err := p.life.Watch(ctx, p.q.path+"/"+ahead.Name)
			switch {
			case errors.Is(err, zk.ErrNoNode) && fault.Is(fault.WaitOnMissing):
				<-ctx.Done()
				return context.Cause(ctx)
			case errors.Is(err, zk.ErrNoNode):
				v.gone(ahead, p.saw.Name == ahead.Name)
				p.besides = false
				fresh, stale = false, ahead.Alone
				if misses++; v.listed && misses >= limit {
					v.listed, v.blind = false, true
					limit *= 2
				}
				continue
			case err != nil:
				return err
			case ahead.Seq == p.node.Seq && w.Stat.Czxid > p.own.Czxid:
				v.notAhead(ahead) // the same number, but it came after us
				continue
			case p.q.sized() && wasAdmitted(w.Data):
				v.released = max(v.released, ahead.Seq)
				fresh = false
				continue
			case try && !p.q.sized():
				return recipes.ErrBusy
			}
			p.saw = ahead
			wait := p.waitFor
			if try {
				wait = p.waitBriefly
			}
			gone, err := wait(ctx, w, ahead)
			if err != nil {
				return err
			}
			if fault.Is(fault.WakeUpTaken) {
				return nil
			}
			if gone {
				v.gone(ahead, true)
			}
			p.besides = false
			misses, fresh, stale = 0, false, ahead.Alone
		}
	}
}

// computed returns one of ours that holds alone, by its number.
func (p *Place) computed(seq int64) Node {
	k, _ := p.q.recipe.alone()
	return Node{Name: nameAt(prefix(p.czxid, k.Text), seq), Kind: k.Kind, Seq: seq, Alone: true}
}

// believe takes in what the record says, unless there are more contenders than
// numbers were given from ours on: then one of them may have ours, or an earlier
// one, and only a list can tell.
func (p *Place) believe(v *view) {
	if p.q.sized() { // those ahead who hold are still there, and the record decides
		v.released = max(v.released, p.record.Released)
		return
	}
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

// list takes in who is in the directory now. same says that the record is still
// as we know it: then the list is also proof of the own node, and as good as a
// look.
func (p *Place) list(ctx context.Context, v *view) (same bool, err error) {
	nodes, stat, err := p.q.nodes(ctx, p.life)
	if err != nil {
		return false, err
	}
	if !v.list(nodes) && !fault.Is(fault.GrantWithoutNode) {
		return false, errPlaceLost
	}
	if p.numbersWentBack(nodes, nextSeq(stat)) {
		return false, errWentBack
	}
	if stat.Czxid != p.czxid || stat.Version != p.written.Version {
		return false, nil
	}
	p.written = stat
	return true, nil
}

// numbersWentBack reports whether the counter stands at next although one of ours has a
// number beyond that: then it has gone back, and that one was here before us, for all that
// our number is smaller.
func (p *Place) numbersWentBack(nodes []Node, next int64) bool {
	stamp := prefix(p.czxid, "") // another library's, or somebody's, may have any number
	return p.node.Seq < next && slices.ContainsFunc(nodes, func(n Node) bool {
		return n.Seq >= next && strings.HasPrefix(n.Name, stamp)
	})
}

// waitFor waits until something happens to the node ahead, which may be nothing
// of consequence; gone is true if the node is known to be gone though nothing was
// heard of it. In a longer wait it sees to it that the own node is still there.
func (p *Place) waitFor(ctx context.Context, w *session.Watch, ahead Node) (gone bool, err error) {
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
			p.noticed()
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
			p.noticed()
			stat, err := p.life.Exists(ctx, p.q.path+"/"+ahead.Name)
			if err != nil || stat == nil {
				return err == nil, err
			}
			if stat.Version != w.Stat.Version { // it was admitted
				return false, nil
			}
			poll.Reset(pollEvery + rand.N(pollEvery))
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-p.life.Done():
			return false, p.life.Err()
		}
	}
}

func (p *Place) noticed() {
	if p.bid.Noticed != nil {
		p.bid.Noticed()
	}
}

// watchOwn watches the own node, and fails if it is not there.
func (p *Place) watchOwn(ctx context.Context) error {
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
