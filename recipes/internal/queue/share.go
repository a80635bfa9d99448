package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Who holds alone can let others of another kind in under its own number, and
// release before them: so a writer becomes a reader without anybody coming
// between. Such a contender has a node of its own, which is made in a transaction
// that fails unless the holder's is there: once that has gone, no more can appear.
// Those who wait find it in a list, which they ask for when a holder has gone
// without leaving the mark that nobody is left up to its number.

// sharing is in the names of those nodes.
const sharing = "-under-"

// Shares reports whether one of two contenders was let in under the other.
func Shares(a, b Node) bool {
	return a.Seq == b.Seq && (strings.Contains(a.Name, sharing) || strings.Contains(b.Name, sharing))
}

// under answers a contender of keyword k if ctx comes from a live grant of this
// lock, so that it must not queue behind that: nil, nil if it may.
func (q *Queue) under(ctx context.Context, k Keyword) (*recipes.Grant, error) {
	realm := q.sess.Realm()
	if g, err := recipes.Nested(ctx, q.settings, realm, q.path, k.Kind); g != nil || err != nil {
		return g, err
	}
	for _, other := range q.recipe.Keywords {
		if other.Kind == k.Kind {
			continue
		}
		held, token := recipes.HeldHold(ctx, realm, q.path, other.Kind)
		if held == nil {
			continue
		}
		if k.Alone {
			return nil, recipes.ErrUpgrade
		}
		if h, ours := held.(*hold); ours && other.Alone {
			return q.share(ctx, h, token, k)
		}
	}
	return nil, nil
}

// share lets a contender in under a holder, on the holder's session. It returns
// nil, nil if the holder has just gone.
func (q *Queue) share(ctx context.Context, h *hold, token recipes.Token, k Keyword) (*recipes.Grant, error) {
	for {
		h.mu.Lock()
		if h.over {
			h.mu.Unlock()
			return nil, nil
		}
		h.p.shared = true // before anything is sent: a release in the meantime must know
		h.mu.Unlock()

		name := nameAt(prefix(h.p.czxid, "under-"+rand.Text()+"-"+k.Text), h.p.node.Seq)
		p := &Place{q: q, life: h.p.life, czxid: h.p.czxid, bid: Bid{Keyword: k},
			node: Node{Name: name, Kind: k.Kind, Seq: h.p.node.Seq, Alone: k.Alone}}
		p.ticket = q.ticket(p.bid)
		p.ticket.Token = token
		g, err := p.shareWith(ctx, h.p.path(), token)
		switch {
		case err == nil:
			return g, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, errHolderGone), p.life.Err() != nil:
			return nil, nil
		case !errors.Is(err, errPlaceLost) || q.settings.FailOnLoss:
			return nil, err
		}
	}
}

var errHolderGone = errors.New("the holder's node was removed")

// shareWith makes the node and the grant. What was begun is finished or undone in
// the background if ctx ends first.
func (p *Place) shareWith(ctx context.Context, holder string, token recipes.Token) (*recipes.Grant, error) {
	made := make(chan error)
	given := make(chan struct{})
	defer close(given)
	go func() { // ends when it is known what became of the node, or with the session
		err := p.makeUnder(context.WithoutCancel(ctx), holder, p.ticket.encode())
		select {
		case made <- err:
		case <-given:
			if err == nil {
				p.leave(nil)
			}
		}
	}()
	select {
	case err := <-made:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	g, err := p.hold(ctx, token)
	if err != nil {
		p.leave(nil)
	}
	return g, err
}

// makeUnder makes the node if the holder's is there. The name is used by nobody
// else, so a node that is there already is what an earlier try made.
func (p *Place) makeUnder(ctx context.Context, holder string, data []byte) error {
	for {
		_, err := p.life.Multi(ctx,
			&zk.CheckVersionRequest{Path: holder, Version: -1},
			&zk.CreateRequest{Path: p.path(), Data: data, Flags: zk.FlagEphemeral})
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists):
			return nil
		case errors.Is(err, zk.ErrNoNode):
			stat, err := p.life.Exists(ctx, p.path())
			if err == nil && stat == nil {
				err = errHolderGone
			}
			return err
		case !unknownOutcome(err) || p.life.Err() != nil:
			return err
		}
	}
}
