package fair

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
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
func flowsPath(path string) string { return queue.FlowsPath(path) }

func newGate(l *Lock) (*gate, error) {
	g := &gate{l: l, root: flowsPath(l.Path()) + "/" + nodeName(l.p.Name)}
	g.line = g.root + "/line"
	var err error
	g.q, err = queue.NewGate(l.sess, queue.GatePath(l.Path(), nodeName(l.p.Name)), l.p.Weight, l.set)
	return g, err
}

// busy reports whether anybody waits before the gate.
func (g *gate) busy(ctx context.Context) (bool, error) {
	for {
		life, err := g.l.sess.Life(ctx)
		if err != nil {
			return false, err
		}
		n, err := g.q.Len(ctx, life)
		if err == nil || g.l.set.FailOnLoss || !queue.Lost(ctx, life, err) {
			return n > 0, err
		}
	}
}

// enter takes a place before the gate. The newest request's weight counts. Whoever
// waits for room is told of a change by a node that comes and goes in the line.
func (g *gate) enter(ctx context.Context, life *session.Life, b queue.Bid) (*queue.Place, error) {
	b.Beside = func(ctx context.Context, life *session.Life) error {
		_, err := life.WatchChildren(ctx, g.line) // for waitRoom, which need not ask then
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	}
	at, err := g.q.Enter(ctx, life, b)
	if err != nil {
		return nil, err
	}
	if at.Weight() != g.l.p.Weight {
		bell := g.line + "/weight"
		err := at.SetWeight(ctx, g.l.p.Weight, &zk.CreateRequest{Path: bell, Flags: zk.FlagEphemeral}, &zk.DeleteRequest{Path: bell, Version: -1})
		if err != nil {
			at.Leave(err, func() {})
			return nil, err
		}
	}
	return at, nil
}

// weight is the flow's, as far as one before the gate knows.
func (g *gate) weight(at *queue.Place) int {
	if w := at.Weight(); w > 0 {
		return w
	}
	return g.l.p.Weight // somebody else's data is there
}

// pass takes a place in the lock's queue for one that stands before the gate. The gate
// is left to the next one when that place is certain, so that those of a flow come to
// the queue in their order. If it fails, only the place before the gate is left: what
// was asked for is seen to its end, so that it can be taken back, whatever becomes of
// ctx.
func (g *gate) pass(ctx context.Context, life *session.Life, at *queue.Place, acc *account, b queue.Bid) (*queue.Place, *marker, error) {
	if err := at.Turn(ctx); err != nil {
		return nil, nil, err
	}
	fresh := false // the weight was read again just now: it must not change for ever
	for {
		waited, err := g.waitRoom(ctx, life, at)
		if err != nil {
			return nil, nil, err
		}
		if acc != nil {
			if err := g.sitOut(ctx, life, at, acc); err != nil {
				return nil, nil, err
			}
		}
		m := g.mark(life, at, fresh && !waited)
		main, err := g.l.main.Enter(context.WithoutCancel(ctx), life, b)
		if <-m.made; err == nil {
			err = m.err
		}
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			at.PassOn()
			return main, m, nil
		}
		left := make(chan struct{})
		if main != nil {
			main.Leave(err, func() { close(left) })
			<-left
		}
		m.remove()
		m.waitGone()
		if !errors.Is(err, errOutdated) {
			return nil, nil, err
		}
		if err := at.Look(ctx); err != nil {
			return nil, nil, err
		}
		fresh = true
	}
}

// waitRoom waits until fewer of the flow are in line than its weight, and reports
// whether it had to. Nobody but its caller, who is the first before the gate, adds to
// them.
func (g *gate) waitRoom(ctx context.Context, life *session.Life, at *queue.Place) (waited bool, err error) {
	if fault.Is(fault.NoRoomNeeded) {
		return false, nil
	}
	for {
		w, err := life.WatchChildren(ctx, g.line)
		if errors.Is(err, zk.ErrNoNode) {
			return waited, nil
		}
		if err != nil {
			return waited, err
		}
		n := g.q.Count(w.Names)
		if n < g.weight(at) {
			return waited, nil
		}
		waited = true
		heard, err := await(ctx, life, at, w)
		if err != nil {
			return waited, err
		}
		if !heard { // what the watch has seen may be old
			names, _, err := life.Children(ctx, g.line)
			if err != nil && !errors.Is(err, zk.ErrNoNode) {
				return waited, err
			}
			n = g.q.Count(names) + 1
		}
		if n-1 < g.weight(at) {
			return waited, nil // one of them has gone
		}
	}
}

// sitOut waits while the flow is ahead of its share and others are in line.
func (g *gate) sitOut(ctx context.Context, life *session.Life, at *queue.Place, acc *account) error {
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
		if o.Len == 0 || !acc.ahead(o) {
			return nil
		}
		w, err := g.l.main.WatchLast(ctx, life, o)
		if err != nil {
			return err
		}
		if w == nil {
			return nil // nobody is in line
		}
		if _, err := await(ctx, life, at, w); err != nil {
			return err
		}
	}
}

// lookEvery, and up to as much again, is when a wait looks again although nothing
// was heard: an event that got lost must not mean a wait without end.
const lookEvery = 30 * time.Second

// await waits until it is time to look again, and reports whether the server has told
// of a change. In a longer wait it sees to it that the place before the gate is still
// there.
func await(ctx context.Context, life *session.Life, at *queue.Place, w *session.Watch) (heard bool, err error) {
	guard := time.NewTimer(queue.GuardAfter)
	defer guard.Stop()
	look := time.NewTimer(lookEvery + rand.N(lookEvery))
	defer look.Stop()
	var own <-chan struct{}
	for {
		select {
		case <-w.Fired:
			return w.Changed(), nil
		case <-guard.C:
			own, err = at.WatchOwn(ctx)
		case <-own:
			own, err = at.WatchOwn(ctx)
		case <-look.C:
			return false, at.Look(ctx)
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-life.Done():
			err = life.Err()
		}
		if err != nil {
			return false, err
		}
	}
}
