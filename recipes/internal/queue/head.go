package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/session"
)

// A headwait is what the first in line knows. Those before it were admitted or
// are gone, and nobody after it can be admitted before it, so the seats change
// only by going.
type headwait struct {
	p     *Place
	seats []seat                   // of the record
	there map[int64]*session.Watch // seats whose nodes were seen; nil: seen without a watch
	gone  map[int64]bool           // seats whose nodes are gone, for good
	dir   *session.Watch           // of the record; nil: none that can be relied on
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
