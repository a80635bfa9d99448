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

// The renewer is the one loop that prolongs whatever the client holds, and revokes what
// our own clock trusts no longer. When each is renewed is in plan.go.
type renewer struct {
	c    *Client
	wake chan struct{}

	split atomic.Bool // a script may only have keys of one slot

	mu     sync.Mutex
	holds  map[*hold]struct{}
	byLock map[string][]*hold // by the first key
	epoch  time.Time          // of the beats; zero: the loop does not run
	at     time.Time          // when the loop looks next
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
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.holds[h] = struct{}{}
	r.byLock[h.l.keys[0]] = append(r.byLock[h.l.keys[0]], h)
	if r.epoch.IsZero() {
		r.epoch = time.Now()
		r.at = r.epoch // it looks at once
		if !r.c.spawn(r.loop) {
			return false
		}
	}
	r.planNext(h)
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
	r.nudge()
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

// nudge has the loop look again.
func (r *renewer) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// look says what is to be done, and when to look again.
func (r *renewer) look() (due, expired []*hold, at time.Time, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	at = now.Add(time.Minute)
	for h := range r.holds {
		left := h.trustLeft()
		if left <= 0 {
			expired = append(expired, h)
			continue
		}
		event := now.Add(left)
		if !h.l.cfg.fixed && h.begin(now) {
			due = append(due, h)
			h.at = r.planRepeat(h, now, left)
		}
		if !h.l.cfg.fixed && h.at.After(now) && h.at.Before(event) {
			event = h.at
		}
		if event.Before(at) {
			at = event
		}
	}
	r.at = at
	return due, expired, at, r.closed
}

// begin counts a renewal of h if it is due, and not too many are unanswered.
func (h *hold) begin(now time.Time) bool {
	if h.at.After(now) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.inflight >= maxInflight {
		return false
	}
	h.inflight++
	return true
}
