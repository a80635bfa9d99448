package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A place is a ticket of a fair lock.
type place struct {
	lk            *lock
	c             *client
	flow          string
	asked, joined time.Time // Join was called, and had returned
	overtaken     *place    // the first who came later, and was granted before
}

// joins is told of a place that was taken.
func (o *oracle) joins(p *place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tickets = append(o.tickets, p)
}

// leaves is told that a place was given up or lost.
func (o *oracle) leaves(p *place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leavesLocked(p)
}

func (o *oracle) leavesLocked(p *place) {
	o.tickets = slices.DeleteFunc(o.tickets, func(q *place) bool { return q == p })
}

// checkArrival sees that whoever stayed until it was granted was not overtaken by
// one of its own flow that came later.
func (o *oracle) checkArrival(h *hold) {
	p := h.ask.place
	if p == nil {
		return
	}
	if q := p.overtaken; q != nil && p.joined.After(p.lk.meddled) {
		o.failLocked("arrival", "%v: its place in flow %q, taken at %v, was granted after that of client %d, asked for at %v",
			h, p.flow, p.joined.Sub(o.start), q.c.n, q.asked.Sub(o.start))
	}
	for _, q := range o.tickets {
		if q.lk == p.lk && q.flow == p.flow && q.joined.Before(p.asked) && q.overtaken == nil {
			q.overtaken = p
		}
	}
}

// A turn is a grant of a lock with flows.
type turn struct {
	flow  string
	began time.Time
	token recipes.Token
}

// checkShares sees that a contender that stood in the lock's queue did not see more
// grants of other flows than their weights allow, and one that was held.
func (o *oracle) checkShares(h *hold) {
	lk := h.lk
	if lk.weights == nil {
		return
	}
	seen := make(map[string]int)
	for _, t := range slices.Backward(lk.turns) {
		if h.queued.IsZero() || t.began.Before(h.queued) {
			break
		}
		if t.flow != h.ask.flow && t.token < h.g.Token() {
			seen[t.flow]++
		}
	}
	sum, bound := 0, 1
	for flow, n := range lk.weights {
		if flow != h.ask.flow {
			sum, bound = sum+seen[flow], bound+n
		}
	}
	if sum > bound && h.queued.After(lk.meddled.Add(meddlingLasts)) {
		o.failLocked("shares", "%v of flow %q, in line since %v, has seen %v go first: want at most %d of weights %v",
			h, h.ask.flow, h.queued.Sub(o.start), seen, bound, lk.weights)
	}
	lk.turns = append(lk.turns, turn{h.ask.flow, time.Now(), h.g.Token()})
	if len(lk.turns) > 400 {
		lk.turns = slices.Clone(lk.turns[200:])
	}
}

// flowNames are those of a lock's flows, in order.
func (lk *lock) flowNames() []string { return slices.Sorted(maps.Keys(lk.weights)) }
