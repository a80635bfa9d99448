package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

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
	return q.acquire(ctx, op, request{k, n, try})
}

// wasAdmitted tells from a node's data whether its contender holds slots.
func wasAdmitted(data []byte) bool {
	var t ticket
	return json.Unmarshal(data, &t) == nil && t.Slots != ""
}

// A headwait is what the first in line knows. Those before it were admitted or
// are gone, and nobody after it can be admitted before it, so the seats change
// only by going.
type headwait struct {
	p     *place
	seats []seat                   // of the record
	there map[int64]*session.Watch // seats whose nodes were seen; nil: seen without a watch
	gone  map[int64]bool           // seats whose nodes are gone, for good
	dir   *session.Watch           // of the record; nil: none that can be relied on
}

// waitRoom returns nil once the slots are this contender's. Its caller is the
// first in line. Writing the record fails if it has changed since it was read,
// so that neither a change of the size nor anything else can let too many in.
func (p *place) waitRoom(ctx context.Context, try bool) error {
	h := &headwait{p: p, there: make(map[int64]*session.Watch), gone: make(map[int64]bool)}
	for p.slots == nil {
		if err := h.takeSeats(ctx); err != nil {
			return err
		}
		if p.slots != nil {
			break
		}
		v, slots := judge(p.record.Size, p.request.slots, h.taken())
		unknown := h.unknown()
		switch {
		case v == tooMany:
			return tooLarge(p.request.slots, p.record.Size)
		case len(unknown) > 0 && p.written.NumChildren == 1: // the own node
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

// takeSeats takes in the record. If the own seat is in it, the contender was
// admitted, and the answer to that was lost.
func (h *headwait) takeSeats(ctx context.Context) error {
	p := h.p
	if p.record.Size == 0 { // somebody has emptied it
		p.record.Size = p.q.sizeSeen()
	}
	if p.unsure && p.written.NumChildren > 1 {
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

// taken returns the seats that count: all that are not known to be gone.
func (h *headwait) taken() (seats []seat) {
	for _, s := range h.seats {
		if !h.gone[s.Seq] {
			seats = append(seats, s)
		}
	}
	return seats
}

// unknown returns the seats of which it is not known whether they are there. When
// several go at once, as with their session, the server tells of them all before it
// answers what was asked about the first.
func (h *headwait) unknown() (seats []seat) {
	for _, s := range h.taken() {
		w, seen := h.there[s.Seq]
		if seen && w != nil {
			select {
			case <-w.Fired:
				seen = false
			default:
			}
		}
		if !seen {
			seats = append(seats, s)
		}
	}
	return seats
}

// unwatched forgets the seats that were seen without a watch, if there are any.
func (h *headwait) unwatched() (any bool) {
	for seq, w := range h.there {
		if w == nil {
			delete(h.there, seq)
			any = true
		}
	}
	return any
}

// census sees which of the seats are there, and leaves no watch.
func (h *headwait) census(ctx context.Context, seats []seat) error {
	live, err := h.p.q.present(ctx, h.p.life, seats, h.p.prefix, h.p.written.NumChildren)
	if err != nil {
		return err
	}
	for _, s := range seats {
		if live[s.Seq] {
			h.there[s.Seq] = nil
		} else {
			h.gone[s.Seq] = true
			delete(h.there, s.Seq)
		}
	}
	return nil
}

// watch sees which of the seats are there, and watches those and the record.
func (h *headwait) watch(ctx context.Context, seats []seat) error {
	p := h.p
	watches := make([]*session.Watch, len(seats))
	errs := make([]error, len(seats)+1)
	var dir *session.Watch
	var wg sync.WaitGroup
	if h.dir == nil {
		wg.Go(func() { dir, errs[len(seats)] = p.life.Watch(ctx, p.q.path) })
	}
	for i, s := range seats {
		wg.Go(func() {
			watches[i], errs[i] = p.life.Watch(ctx, p.q.path+"/"+nameAt(p.prefix, s.Seq))
		})
	}
	wg.Wait()
	for i, s := range seats {
		switch {
		case errors.Is(errs[i], zk.ErrNoNode):
			h.gone[s.Seq] = true
		case errs[i] != nil:
			return errs[i]
		default:
			h.there[s.Seq] = watches[i]
		}
	}
	if err := errs[len(seats)]; errors.Is(err, zk.ErrNoNode) {
		return errPlaceLost
	} else if err != nil {
		return err
	}
	if dir != nil {
		h.dir = dir
		return p.takeRecord(dir.Data, dir.Stat)
	}
	return nil
}

// wait waits until something happens to a seat or to the record, which is then
// to be looked at again, or until it is time to look anyway.
func (h *headwait) wait(ctx context.Context) error {
	p := h.p
	guard := time.NewTimer(guardAfter)
	defer guard.Stop()
	poll := time.NewTimer(pollEvery + rand.N(pollEvery))
	defer poll.Stop()
	var own reflect.Value // none yet
	if p.guard != nil {
		own = reflect.ValueOf(p.guard.Fired)
	}
	const fixed = 6
	cases := []reflect.SelectCase{
		receive(reflect.ValueOf(ctx.Done())),
		receive(reflect.ValueOf(p.life.Done())),
		receive(reflect.ValueOf(h.dir.Fired)),
		receive(reflect.ValueOf(guard.C)),
		receive(own),
		receive(reflect.ValueOf(poll.C)),
	}
	var seqs []int64
	for seq, w := range h.there {
		seqs = append(seqs, seq)
		cases = append(cases, receive(reflect.ValueOf(w.Fired)))
	}
	for {
		switch i, _, _ := reflect.Select(cases); i {
		case 0:
			return context.Cause(ctx)
		case 1:
			return p.life.Err()
		case 2:
			h.dir = nil
			return nil
		case 3, 4:
			if err := p.watchOwn(ctx); err != nil {
				return err
			}
			cases[4] = receive(reflect.ValueOf(p.guard.Fired))
		case 5:
			if err := p.readRecord(ctx); err != nil {
				return err
			}
			return h.recheck(ctx)
		default:
			delete(h.there, seqs[i-fixed])
			return nil
		}
	}
}

func receive(c reflect.Value) reflect.SelectCase {
	return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: c}
}

// recheck sees which seats are gone although no watch has fired.
func (h *headwait) recheck(ctx context.Context) error {
	live, err := h.p.q.present(ctx, h.p.life, h.taken(), h.p.prefix, h.p.written.NumChildren)
	if err != nil {
		return err
	}
	for _, s := range h.taken() {
		if !live[s.Seq] {
			h.gone[s.Seq] = true
			delete(h.there, s.Seq)
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
