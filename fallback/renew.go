package fallback

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/recipes"
)

const (
	perScript   = 100 // locks that one script renews
	perPipeline = 16  // scripts that one round trip carries
	maxInflight = 3   // unanswered renewals of one hold
)

// The renewer is the one loop that prolongs whatever the client holds, each a third
// of its TTL before the last, and revokes what our own clock trusts no longer. Holds
// that are due soon are renewed together with the one that is due now, so that those
// with the same TTL end up in the same batches. What is not answered is sent again
// after a twelfth of the TTL: a renewal only ever prolongs what is still held, so it
// may be carried out any number of times.
type renewer struct {
	c    *Client
	wake chan struct{}

	split atomic.Bool // a script may only have keys of one slot

	mu     sync.Mutex
	holds  map[*hold]struct{}
	byLock map[string][]*hold // by the first key
	at     time.Time          // when the loop looks next; zero: it does not run
	closed bool
	none   *sync.Cond // with mu: nothing is held
}

func newRenewer(c *Client) *renewer {
	r := &renewer{c: c, wake: make(chan struct{}, 1), holds: make(map[*hold]struct{}), byLock: make(map[string][]*hold)}
	r.none = sync.NewCond(&r.mu)
	if _, single := c.rdb.(*redis.Client); !single {
		r.split.Store(true)
	}
	return r
}

// add begins to renew h, and reports whether the client is open. What the client held
// before and h excludes is lost: somebody has removed it, and we are the first to know.
func (r *renewer) add(h *hold) bool {
	for _, other := range r.of(h.l) {
		if h.l.kind.excludes(h.want, other.want) {
			other.lose(recipes.ErrNodeDeleted, true)
		}
	}
	h.due = h.trust.window * 2 / 3
	if h.trust.window < h.l.cfg.ttl/2 {
		h.due = h.trust.window / 2 // claimed: it has waited for part of that
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.holds[h] = struct{}{}
	r.byLock[h.l.keys[0]] = append(r.byLock[h.l.keys[0]], h)
	event := time.Now().Add(h.trust.remaining() - h.due)
	if h.l.cfg.fixed {
		event = time.Now().Add(h.trust.remaining())
	}
	switch {
	case r.at.IsZero():
		r.at = event
		if !r.c.spawn(r.loop) {
			return false
		}
	case event.Before(r.at):
		r.at = event
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	return true
}

func (r *renewer) remove(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.holds, h)
	if len(r.holds) == 0 {
		r.none.Broadcast()
	}
	key := h.l.keys[0]
	r.byLock[key] = slices.DeleteFunc(r.byLock[key], func(other *hold) bool { return other == h })
	if len(r.byLock[key]) == 0 {
		delete(r.byLock, key)
	}
}

// close revokes everything. Afterwards nothing can be added.
func (r *renewer) close() {
	r.mu.Lock()
	r.closed = true
	all := make([]*hold, 0, len(r.holds))
	for h := range r.holds {
		all = append(all, h)
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
	r.mu.Unlock()
	for _, h := range all {
		h.lose(recipes.ErrSessionClosed, false)
	}
}

// of returns what the client holds of a lock.
func (r *renewer) of(l *lock) []*hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.byLock[l.keys[0]])
}

// drain waits until whoever had a hold has begun to give it up.
func (r *renewer) drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.holds) > 0 {
		r.none.Wait()
	}
}

func (r *renewer) loop() {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-r.wake:
		}
		due, expired, at, closed := r.look()
		for _, h := range expired {
			h.lose(recipes.ErrSessionLost, false)
		}
		r.send(due)
		if closed {
			return
		}
		t.Reset(time.Until(at))
	}
}

// look says what is to be done, and when to look again.
func (r *renewer) look() (due, expired []*hold, at time.Time, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	at = now.Add(time.Minute)
	var soon []*hold
	for h := range r.holds {
		left := h.trustLeft()
		if left <= 0 {
			expired = append(expired, h)
			continue
		}
		event := now.Add(left)
		if !h.l.cfg.fixed {
			wait := max(left-h.due, h.next.Sub(now))
			h.mu.Lock()
			blocked := h.inflight >= maxInflight
			h.mu.Unlock()
			switch {
			case blocked:
			case wait <= 0:
				due = append(due, h)
			case wait <= h.l.cfg.ttl/6 && h.next.Before(now):
				soon = append(soon, h)
				event = now.Add(min(left, wait))
			default:
				event = now.Add(min(left, wait))
			}
		}
		if event.Before(at) {
			at = event
		}
	}
	if len(due) > 0 {
		due = append(due, soon...)
	}
	for _, h := range due {
		h.next = now.Add(h.l.cfg.ttl / 12)
		h.mu.Lock()
		h.inflight++
		h.mu.Unlock()
		if h.next.Before(at) {
			at = h.next
		}
	}
	r.at = at
	return due, expired, at, r.closed
}

// A batch is what goes in one script.
type batch struct {
	holds []*hold
	query query
}

// send renews holds, on goroutines of their own.
func (r *renewer) send(holds []*hold) {
	if len(holds) == 0 {
		return
	}
	var plain []batch
	for _, b := range r.batches(holds) {
		if b.holds[0].l.cfg.replicas > 0 {
			r.dispatch([]batch{b})
			continue
		}
		plain = append(plain, b)
	}
	for part := range slices.Chunk(plain, perPipeline) {
		r.dispatch(part)
	}
}

func (r *renewer) dispatch(batches []batch) {
	sent := stamped()
	if r.c.spawn(func() { r.ship(batches, sent) }) {
		return
	}
	for _, b := range batches {
		r.returned(b)
	}
}

// batches groups holds that one script can renew.
func (r *renewer) batches(holds []*hold) []batch {
	split := r.split.Load()
	same := func(a, b *hold) int {
		n := cmp.Or(
			cmp.Compare(a.l.kind.name, b.l.kind.name),
			cmp.Compare(a.l.cfg.replicas, b.l.cfg.replicas),
			cmp.Compare(a.l.cfg.replicaWait, b.l.cfg.replicaWait))
		if n == 0 && split {
			n = cmp.Compare(slotKey(a.l.keys[0]), slotKey(b.l.keys[0]))
		}
		return n
	}
	slices.SortFunc(holds, same)
	var list []batch
	for _, h := range holds {
		last := len(list) - 1
		if last < 0 || len(list[last].holds) >= perScript || same(list[last].holds[0], h) != 0 {
			list = append(list, batch{query: query{script: h.l.kind.renew}})
			last++
		}
		b := &list[last]
		b.holds = append(b.holds, h)
		b.query.keys = append(b.query.keys, h.l.renewKeys()...)
		b.query.args = append(b.query.args, h.id, h.l.px())
	}
	return list
}

// ship sends batches and takes over the answers.
func (r *renewer) ship(batches []batch, sent stamp) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	results := make([]result, len(batches))
	acks := 0
	if cfg := batches[0].holds[0].l.cfg; cfg.replicas > 0 {
		results[0].reply, acks, results[0].err = r.c.runAndWait(ctx, batches[0].query, cfg.replicas, cfg.replicaWait)
	} else {
		queries := make([]query, len(batches))
		for i, b := range batches {
			queries[i] = b.query
		}
		results = r.c.runAll(ctx, queries)
	}
	for i, b := range batches {
		r.returned(b)
		if err := results[i].err; err != nil {
			r.failed(b, err)
			continue
		}
		for n, h := range b.holds {
			switch {
			case number(results[i].reply, n) != 1:
				if len(results[i].reply) == len(b.holds) {
					h.lose(recipes.ErrNodeDeleted, true)
				}
			case acks >= h.l.cfg.replicas:
				h.renewed(trustFor(sent, h.l.cfg.ttl))
				r.prolonged(h)
			}
		}
	}
}

// returned notes that a batch is no longer under way.
func (r *renewer) returned(b batch) {
	for _, h := range b.holds {
		h.mu.Lock()
		h.inflight--
		h.mu.Unlock()
	}
}

// prolonged plans the next renewal of h.
func (r *renewer) prolonged(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.due = h.trustWindow() * 2 / 3
	h.next = time.Time{}
}

func (r *renewer) failed(b batch, err error) {
	if redis.HasErrorPrefix(err, "CROSSSLOT") || says(err, "Script attempted to access keys that do not hash to the same slot") {
		r.split.Store(true) // a single client may have a cluster behind it
		r.mu.Lock()
		for _, h := range b.holds {
			h.next = time.Time{}
		}
		r.mu.Unlock()
		select {
		case r.wake <- struct{}{}:
		default:
		}
		return
	}
	r.c.set.Logger.Warn("locks could not be renewed; it is tried again", "locks", len(b.holds), "error", err)
}
