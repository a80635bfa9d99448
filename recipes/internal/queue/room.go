package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// What can be told about a lock with slots without being first in line.

// tryPatience is how long a contender that must not wait gives those just ahead
// to take what there is room for. That is a matter of two round trips, unless
// their program has stopped.
const tryPatience = time.Second

// waitBriefly waits for the contender ahead, if there is room for all who are
// ahead and for this one: then it is only a matter of their taking it.
func (p *Place) waitBriefly(ctx context.Context, w *session.Watch, ahead Node) (gone bool, err error) {
	room, err := p.q.hasRoom(ctx, p.life, p.record, p.prefix, p.node.Seq, p.bid.Slots)
	if !room || err != nil {
		return false, cmp.Or(err, recipes.ErrBusy)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, tryPatience, recipes.ErrBusy)
	defer cancel()
	return p.waitFor(ctx, w, ahead)
}

// looksFull reports whether a request would have to wait, without writing
// anything; while the queue follows its normal course, without listing it.
func (q *Queue) looksFull(ctx context.Context, life *session.Life, b Bid) (bool, error) {
	data, stat, err := life.Get(ctx, q.path)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r, err := q.checkRecord(data)
	if err != nil {
		return false, err
	}
	if err := q.agree(r, stat.Czxid, b.Slots); err != nil {
		return false, err
	}
	q.note(stat)
	if r = r.in(stat.Czxid); stat.NumChildren == 0 || r.Size == 0 {
		return false, nil
	}
	seats, err := parseSeats(r.Seats)
	if err != nil {
		return false, nil // the way to the grant says what is wrong
	}
	names := prefix(stat.Czxid, b.Keyword.Text)
	if nextSeq(stat) <= r.Released+1 { // nobody has queued since the last was admitted
		if v, _ := judge(r.Size, b.Slots, seats); v == full {
			live, err := q.present(ctx, life, seats, names, stat.NumChildren)
			if err != nil {
				return false, err
			}
			v, _ = judge(r.Size, b.Slots, those(seats, live))
			return v == full, nil
		}
		return false, nil
	}
	if v, _ := judge(r.Size, min(r.Size, b.Slots+1), seats); v == full {
		if first, err := life.Exists(ctx, q.path+"/"+nameAt(names, r.Released+1)); first != nil || err != nil {
			return first != nil, err
		}
	}
	room, err := q.hasRoom(ctx, life, r, names, math.MaxInt64, b.Slots)
	return !room, err
}

// hasRoom reports whether there is room for n and for all who wait before the
// number given.
func (q *Queue) hasRoom(ctx context.Context, life *session.Life, r record, prefix string, before int64, n int) (bool, error) {
	nodes, _, err := q.nodes(ctx, life)
	if err != nil {
		return false, err
	}
	seats, err := parseSeats(r.Seats)
	if err != nil {
		return true, nil // the way to the grant says what is wrong
	}
	there := make(map[int64]bool)
	var ahead []Node
	for _, n := range nodes {
		there[n.Seq] = true
		if n.Seq > r.Released && n.Seq < before {
			ahead = append(ahead, n)
		}
	}
	free := r.Size - n
	for _, s := range those(seats, there) {
		free -= len(s.Slots)
	}
	if free < len(ahead) { // each asks for one at least
		return false, nil
	}
	tickets, err := q.tickets(ctx, life, ahead)
	if err != nil {
		return false, err
	}
	for _, t := range tickets {
		free -= t.Permits
	}
	return free >= 0, nil
}

func those(seats []seat, there map[int64]bool) (left []seat) {
	for _, s := range seats {
		if there[s.Seq] {
			left = append(left, s)
		}
	}
	return left
}

// present sees which seats' nodes are there: by one listing where that is short,
// or else one by one.
func (q *Queue) present(ctx context.Context, life *session.Life, seats []seat, prefix string, children int32) (map[int64]bool, error) {
	there := make(map[int64]bool)
	if len(seats) > 1 && int(children) <= 2*len(seats)+8 {
		nodes, _, err := q.nodes(ctx, life)
		for _, n := range nodes {
			there[n.Seq] = true
		}
		return there, err
	}
	stats := make([]*zk.Stat, len(seats))
	err := each(len(seats), func(i int) (err error) {
		stats[i], err = life.Exists(ctx, q.path+"/"+nameAt(prefix, seats[i].Seq))
		return err
	})
	for i, s := range seats {
		there[s.Seq] = stats[i] != nil
	}
	return there, err
}

// seatsByNode finds out from the nodes before the number given who was admitted.
func (q *Queue) seatsByNode(ctx context.Context, life *session.Life, before int64) (seats []seat, err error) {
	nodes, _, err := q.nodes(ctx, life)
	if err != nil {
		return nil, err
	}
	var ahead []Node
	for _, n := range nodes {
		if n.Seq < before {
			ahead = append(ahead, n)
		}
	}
	tickets, err := q.tickets(ctx, life, ahead)
	if err != nil {
		return nil, err
	}
	for i, t := range tickets {
		if slots, err := parseSlots(t.Slots); err == nil {
			seats = append(seats, seat{ahead[i].Seq, slots})
		}
	}
	return seats, nil
}

// tickets reads what the nodes say about themselves: nothing where they are gone.
func (q *Queue) tickets(ctx context.Context, life *session.Life, nodes []Node) ([]ticket, error) {
	tickets := make([]ticket, len(nodes))
	err := each(len(nodes), func(i int) error {
		data, _, err := life.Get(ctx, q.path+"/"+nodes[i].Name)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err == nil && json.Unmarshal(data, &tickets[i]) != nil {
			tickets[i] = ticket{Permits: 1} // not ours
		}
		return err
	})
	return tickets, err
}

// each runs fn for 0 to n-1, some at a time, and returns the first error.
func each(n int, fn func(i int) error) error {
	errs := make([]error, n)
	inFlight := make(chan struct{}, 64)
	var wg sync.WaitGroup
	for i := range n {
		inFlight <- struct{}{}
		wg.Go(func() {
			defer func() { <-inFlight }()
			errs[i] = fn(i)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
