package fallback

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A hold is a lock that the server has given to a contender of ours: what stands
// behind a grant, or behind several in a row that goroutines pass on.
type hold struct {
	l       *lock
	want    want
	id      string
	member  string
	since   stamp   // of the grant
	further []int64 // what the lock told beside the token

	mu     sync.Mutex
	trust  trust
	token  recipes.Token // of the grant that has it now
	owner  string
	revoke func(cause error, gone bool) bool // of that grant
	lost   error                             // why it is lost
	gone   bool                              // lost, and nothing is left on the server
	over   bool                              // given up, or lost
	left   func()                            // called once, when it is over and done with

	inflight int // renewals without an answer

	at time.Time // of the next renewal; with the renewer's mu
}

// Remaining implements recipes.Hold.
func (h *hold) Remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return 0
	}
	return h.trust.remaining()
}

// Slots is what recipes.Grant.Slots asks for.
func (h *hold) Slots() []int {
	var slots []int
	for _, n := range h.further {
		slots = append(slots, int(n))
	}
	return slots
}

// renewed takes over what an answer is worth.
func (h *hold) renewed(t trust) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.remaining() > h.trust.remaining() {
		h.trust = t
	}
}

// Verify implements recipes.Hold: one round trip, which renews at the same time.
func (h *hold) Verify(ctx context.Context) error {
	c := h.l.c
	px := h.l.px()
	if h.l.cfg.fixed {
		px = 0
	}
	pause := newPause(time.Millisecond, 250*time.Millisecond)
	for {
		sent := stamped()
		reply, acks, err := c.ask(ctx, h.l.withReplicas(query{h.l.kind.renew, h.l.renewKeys(), []any{h.id, px}}))
		if err := c.ended(ctx); err != nil {
			return err
		}
		switch fateOf(err) {
		case answered:
			if number(reply, 0) != 1 {
				h.lose(recipes.ErrNodeDeleted, true)
				return nil
			}
			if px > 0 && acks >= h.l.cfg.replicas {
				h.renewed(trustFor(sent, h.l.cfg.ttl))
			}
			return nil
		case refused:
			return translate(err)
		}
		c.pauseFor(ctx, pause.NextBackOff())
	}
}

// lose revokes the grant, if there is one, and whoever comes next.
func (h *hold) lose(cause error, gone bool) {
	h.mu.Lock()
	if h.lost == nil {
		h.lost, h.gone = cause, gone
	}
	revoke := h.revoke
	h.mu.Unlock()
	if revoke == nil {
		return // whoever comes next sees it
	}
	if revoke(cause, gone) && gone && h.end() {
		h.leave()
	}
}

// grant makes a grant of the hold, or returns the reason why it is lost.
func (h *hold) grant(l *lock, token recipes.Token, as recipes.Hold) (*recipes.Grant, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost == nil && h.trust.remaining() <= 0 {
		h.lost = recipes.ErrSessionLost
	}
	if h.lost != nil {
		return nil, h.lost
	}
	h.token, h.owner = token, l.set.Owner
	g, revoke := recipes.NewGrant(recipes.Spec{
		Realm:    l.realm(),
		Path:     l.name,
		Mode:     h.want.mode,
		Token:    token,
		Settings: l.set,
		Hold:     as,
	})
	h.revoke = revoke
	return g, nil
}

// pass takes the hold from its grant, for another. It reports whether that makes sense.
func (h *hold) pass() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || h.lost != nil || h.trust.remaining() < h.l.cfg.live/3 {
		return false
	}
	h.revoke = nil
	return true
}

// end takes the hold out of renewal, and reports whether it was not over before.
func (h *hold) end() bool {
	h.mu.Lock()
	first := !h.over
	h.over = true
	h.mu.Unlock()
	if first {
		h.l.c.renewer.remove(h)
	}
	return first
}

// leave says that nothing of the hold is left, or as much as there will be.
func (h *hold) leave() {
	if h.left != nil {
		h.left()
	}
}

// GiveUp implements recipes.Hold.
func (h *hold) GiveUp(cause error, done func(error)) {
	h.l.c.janitor.begin() // before it is out of sight of Close
	if !h.end() {
		h.l.c.janitor.cancel()
		done(nil)
		return
	}
	delay := h.l.set.LockDelay
	e := errand{l: h.l, member: h.member, lasts: 2*h.l.cfg.ttl + time.Second}
	if cause != nil && cause != recipes.ErrSessionClosed {
		e.closed = delay
	}
	e.done = func(w was, repeated bool, err error) {
		h.leave()
		if err == nil && cause == nil && w == wasNothing && !repeated && h.trustLeft() > 0 {
			// Our own clock still trusts it: somebody has removed it, or a failover.
			err = fmt.Errorf("%w: %w", recipes.ErrRevoked, recipes.ErrNodeDeleted)
		}
		done(err)
	}
	h.l.c.janitor.do(e)
}

func (h *hold) trustLeft() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trust.remaining()
}

// pauseFor waits for d, or until the call has ended.
func (c *Client) pauseFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-c.closing.Done():
	}
}
