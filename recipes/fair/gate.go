package fair

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// A gate is what stands between the contenders of one flow and the lock's queue.
// They queue before it, and only the first of them looks whether there is room: there
// is while fewer of the flow wait in the lock's queue than its weight. Each of those
// has a node in the flow's line for as long as it waits there, so they can be counted
// and heard of without reading the lock's queue.
type gate struct {
	l    *Lock
	q    *queue.Queue // of those before the gate
	root string       // the flow's node, with its account
	line string       // the parent of those nodes
}

// flowsPath returns where the flows of a lock have their nodes. That is beside the
// lock's queue and not in it, so that the queue is a plain one: for other libraries,
// for its counter, which begins anew when it is empty, and for the server, which
// removes it then.
func flowsPath(path string) string { return path + ".flows" }

func newGate(l *Lock) (*gate, error) {
	g := &gate{l: l, root: flowsPath(l.Path()) + "/" + nodeName(l.p.Name)}
	g.line = g.root + "/line"
	var err error
	g.q, err = queue.NewGate(l.sess, g.root+"/queue", l.p.Weight, l.set)
	return g, err
}

// busy reports whether anybody waits before the gate.
func (g *gate) busy(ctx context.Context) (bool, error) {
	life, err := g.l.sess.Life(ctx)
	if err != nil {
		return false, err
	}
	n, err := g.q.Len(ctx, life)
	return n > 0, err
}

// enter takes a place before the gate. The newest request's weight counts.
func (g *gate) enter(ctx context.Context, life *session.Life, b queue.Bid) (*queue.Place, error) {
	at, err := g.q.Enter(ctx, life, b)
	if err != nil {
		return nil, err
	}
	if at.Weight() != g.l.p.Weight {
		if err := at.SetWeight(ctx, g.l.p.Weight); err != nil {
			at.Leave(err, func() {})
			return nil, err
		}
	}
	return at, nil
}

// pass takes a place in the lock's queue for one that stands before the gate. The gate
// is left to the next one when that place is certain, so that those of a flow come to
// the queue in their order.
func (g *gate) pass(ctx context.Context, life *session.Life, at *queue.Place, acc *account, b queue.Bid) (*queue.Place, *marker, error) {
	if err := at.Turn(ctx); err != nil {
		return nil, nil, err
	}
	if err := g.waitRoom(ctx, life, at); err != nil {
		return nil, nil, err
	}
	if acc != nil {
		if err := g.sitOut(ctx, life, acc); err != nil {
			return nil, nil, err
		}
	}
	m := g.mark(life, at.Name())
	main, err := g.l.main.Enter(ctx, life, b)
	if err == nil {
		err = m.wait(ctx)
	}
	if err != nil {
		if main != nil {
			main.Leave(err, func() {})
		}
		m.remove()
		return nil, nil, err
	}
	at.PassOn()
	return main, m, nil
}

// waitRoom waits until fewer of the flow are in line than its weight. Nobody but its
// caller, who is the first before the gate, adds to them.
func (g *gate) waitRoom(ctx context.Context, life *session.Life, at *queue.Place) error {
	for {
		w, err := life.WatchChildren(ctx, g.line)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		n := len(w.Names)
		if n < at.Weight() {
			return nil
		}
		heard, err := await(ctx, life, w)
		if err != nil {
			return err
		}
		if heard && n-1 < at.Weight() {
			return nil // one of them has gone
		}
	}
}

// sitOut waits while the flow is ahead of its share and others are in line.
func (g *gate) sitOut(ctx context.Context, life *session.Life, acc *account) error {
	for {
		read := make(chan error, 1)
		go func() { read <- acc.read(ctx, life) }()
		o, err := g.l.main.Outlook(ctx, life)
		if rerr := <-read; rerr != nil {
			return rerr
		}
		if err != nil {
			return err
		}
		if o.Empty || !acc.ahead(o.Clock) {
			return nil
		}
		w, err := g.l.main.WatchLast(ctx, life, o)
		if err != nil {
			return err
		}
		if w == nil {
			return nil // nobody is in line
		}
		if _, err := await(ctx, life, w); err != nil {
			return err
		}
	}
}

// lookEvery, and up to as much again, is when a wait looks again although nothing
// was heard: an event that got lost must not mean a wait without end.
const lookEvery = 30 * time.Second

// await waits until it is time to look again, and reports whether the server has told
// of a change.
func await(ctx context.Context, life *session.Life, w *session.Watch) (heard bool, err error) {
	t := time.NewTimer(lookEvery + rand.N(lookEvery))
	defer t.Stop()
	select {
	case <-w.Fired:
		return w.Changed(), nil
	case <-t.C:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-life.Done():
		return false, life.Err()
	}
}
