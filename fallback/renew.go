package fallback

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/recipes"
)

const maxInflight = 3 // unanswered renewals of one hold

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
		if h.l.kind.excludes(h, other) {
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
