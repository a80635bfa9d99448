package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// AcquireN is Acquire for n slots of a lock that has them.
func (q *Queue) AcquireN(ctx context.Context, k Keyword, n int, try bool) (*recipes.Grant, error) {
	op := "acquire"
	if try {
		op = "tryacquire"
	}
	if ctx.Err() != nil {
		return nil, q.fail(op, context.Cause(ctx))
	}
	if size := q.sizeSeen(); n < 1 || n > size {
		return nil, q.fail(op, fmt.Errorf("%w: %d permits: want 1 to %d", recipes.ErrInvalid, n, size))
	}
	g, err := recipes.Nested(ctx, q.settings, q.sess.Realm(), q.path, k.Kind)
	if g != nil && len(g.Slots()) < n {
		g.Release(ctx)
		g, err = nil, fmt.Errorf("%w: it has %d permits, and asks for %d", recipes.ErrDeadlock, len(g.Slots()), n)
	}
	if g != nil || err != nil {
		return g, q.fail(op, err)
	}
	return q.acquire(ctx, Bid{Keyword: k, Op: op, Slots: n, Try: try})
}

// wasAdmitted tells from a node's data whether its contender holds slots.
func wasAdmitted(data []byte) bool {
	var t ticket
	return json.Unmarshal(data, &t) == nil && t.Slots != ""
}

// waitRoom returns nil once the slots are this contender's. Its caller is the
// first in line. Writing the record fails if it has changed since it was read,
// so that neither a change of the size nor anything else can let too many in.
func (p *Place) waitRoom(ctx context.Context, try bool) error {
	h := &headwait{p: p, there: make(map[int64]*session.Watch), gone: make(map[int64]bool)}
	for p.slots == nil {
		if err := h.takeSeats(ctx); err != nil {
			return err
		}
		if p.slots != nil {
			break
		}
		v, slots := judge(p.record.Size, p.bid.Slots, h.taken())
		unknown := h.unknown()
		switch {
		case v == tooMany:
			return tooLarge(p.bid.Slots, p.record.Size)
		case len(unknown) > 0 && p.onlyOne():
			for _, s := range unknown {
				h.gone[s.Seq] = true
			}
		case len(unknown) > 0 && (v == fits || try):
			if err := h.census(ctx, unknown); err != nil {
				return err
			}
		case v == fits:
			if err := h.admit(ctx, slots); err != nil {
				return err
			}
		case try:
			return recipes.ErrBusy
		case len(unknown) > 0 || h.dir == nil:
			if err := h.watch(ctx, unknown); err != nil {
				return err
			}
		case h.unwatched():
			// by a census; the next round watches them
		default:
			if err := h.wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// onlyOne reports whether the own node was the only child when the record was read.
// All who wait on one session share one watch of the record, and no child that comes
// or goes makes that fire: the number in its stat may be from before the own node was
// made.
func (p *Place) onlyOne() bool {
	return p.written.NumChildren == 1 && (p.written.Pzxid >= p.own.Czxid || fault.Is(fault.OlderCount))
}

// takeSeats takes in the record. If the own seat is in it, the contender was
// admitted, and the answer to that was lost.
func (h *headwait) takeSeats(ctx context.Context) error {
	p := h.p
	if p.record.Size == 0 { // somebody has emptied it
		p.record.Size = p.q.sizeSeen()
	}
	if p.unsure && !p.onlyOne() {
		seats, err := p.q.seatsByNode(ctx, p.life, p.node.Seq)
		if err != nil {
			return err
		}
		h.seats = seats
		return nil
	}
	seats, err := parseSeats(p.record.Seats)
	if err != nil {
		return fmt.Errorf("%w: the record makes no sense: %w", recipes.ErrConflict, err)
	}
	h.seats = seats
	for _, s := range seats {
		if s.Seq == p.node.Seq {
			if err := p.prove(ctx); err != nil {
				return err
			}
			p.slots = s.Slots
		}
	}
	return nil
}

// admit writes the slots into the record and into the own node, whose successor
// watches it. If the record has changed, or it is not known whether it was
// written, it is read again.
func (h *headwait) admit(ctx context.Context, slots []int) error {
	p := h.p
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := p.record
	r.Released = p.node.Seq
	r.Seats = encodeSeats(append(h.taken(), seat{p.node.Seq, slots}))
	mine := p.ticket
	mine.Slots = encodeSlots(slots)
	res, err := p.life.Multi(ctx,
		&zk.SetDataRequest{Path: p.path(), Data: mine.encode(), Version: -1},
		&zk.SetDataRequest{Path: p.q.path, Data: r.encode(), Version: p.written.Version})
	switch {
	case err == nil && (!p.isOwn(res[0].Stat) || res[1].Stat.Czxid != p.czxid):
		return errPlaceTaken // in a directory made anew, whose record is by chance at the same version
	case err == nil:
		p.record, p.written, p.unsure = r, res[1].Stat, false
		p.slots = slots
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return errPlaceLost
	case errors.Is(err, zk.ErrBadVersion), unknownOutcome(err) && ctx.Err() == nil && p.life.Err() == nil:
		h.dir = nil
		return p.readRecord(ctx)
	}
	return err
}
