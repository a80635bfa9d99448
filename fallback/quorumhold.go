package fallback

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A quorumHold is a ballot that was won: what stands behind a grant of a Redlock.
type quorumHold struct {
	b     *ballot
	token recipes.Token
	done  chan struct{} // closed when it is over, and giving it back has begun

	mu     sync.Mutex
	trust  trust
	revoke func(cause error, gone bool) bool
	over   bool
}

// grant makes a grant of a ballot that was won, if enough of its time is left.
func (b *ballot) grant() (*recipes.Grant, error) {
	r := b.r
	b.mu.Lock()
	h := &quorumHold{b: b, token: b.token, trust: trustFor(b.sent, r.cfg.ttl), done: make(chan struct{})}
	b.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trust.remaining() < r.cfg.ttl/3 {
		return nil, errLate
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing.Err() != nil {
		return nil, context.Cause(r.closing)
	}
	r.holds[h] = struct{}{}
	r.wg.Go(h.keep)
	g, revoke := recipes.NewGrant(recipes.Spec{
		Realm: r.realm, Path: r.name, Mode: "lock", Token: h.token, Settings: r.set, Hold: h,
	})
	h.revoke = revoke
	return g, nil
}

// errLate: the servers have given the lock, too late to be of use.
var errLate = fmt.Errorf("%w: the answers took too much of the TTL", ErrNoQuorum)

// keep renews the hold until it is over, and ends it when our own clock trusts it no
// longer. It returns when whoever ended it has begun to give it back, so that Close can
// wait for that.
func (h *quorumHold) keep() {
	defer func() { <-h.done }()
	cfg := h.b.r.cfg
	next := cfg.ttl / 3
	for {
		left := h.trustLeft()
		if left <= 0 {
			h.lose(recipes.ErrSessionLost, false)
			return
		}
		wait := min(left, next)
		if cfg.fixed {
			wait = left
		}
		t := time.NewTimer(wait)
		select {
		case <-h.done:
			t.Stop()
			return
		case <-t.C:
		}
		if left = h.Remaining(); cfg.fixed || left <= 0 {
			continue
		}
		over := time.NewTimer(left)
		is := h.renew(cfg.ttl.Milliseconds(), over.C)
		over.Stop()
		switch is {
		case renewed:
			next = cfg.ttl / 3
		case removed:
			h.lose(recipes.ErrNodeDeleted, false)
			return
		default:
			next = cfg.ttl / 12
		}
	}
}

type renewal int

const (
	unclear renewal = iota
	renewed
	removed // more than half of the servers don't have the key
)

// renew asks all servers to prolong the key for px, or with 0 whether they have it, and
// returns as soon as it is certain what more than half of them say, or when over tells:
// the grant must not outlast its trust because a server takes its time.
func (h *quorumHold) renew(px int64, over <-chan time.Time) renewal {
	r := h.b.r
	sent := stamped()
	votes := r.ask(redlockKind.renew, h.b.id, px, uint64(h.token))
	have, not := 0, 0
	for range r.nodes {
		var v vote
		select {
		case v = <-votes:
		case <-over:
			return unclear
		}
		switch {
		case v.err != nil:
		case number(v.reply, 0) == 1:
			have++
		default:
			not++
		}
		if have >= r.quorum() {
			if px > 0 {
				h.prolong(trustFor(sent, r.cfg.ttl))
			}
			return renewed
		}
		if not >= r.quorum() {
			return removed
		}
	}
	return unclear
}

func (h *quorumHold) prolong(t trust) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.remaining() > h.trust.remaining() {
		h.trust = t
	}
}

func (h *quorumHold) trustLeft() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trust.remaining()
}

// Remaining implements recipes.Hold.
func (h *quorumHold) Remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return 0
	}
	return h.trust.remaining()
}

// Verify implements recipes.Hold: one round trip, which renews at the same time.
func (h *quorumHold) Verify(ctx context.Context) error {
	ctx, stop := h.b.r.bound(ctx)
	defer stop()
	px := h.b.r.cfg.ttl.Milliseconds()
	if h.b.r.cfg.fixed {
		px = 0
	}
	pause := newPause(time.Millisecond, 250*time.Millisecond)
	for {
		got := make(chan renewal, 1)
		go func() { got <- h.renew(px, nil) }() // ends with the time limit of the servers
		select {
		case is := <-got:
			switch is {
			case renewed:
				return nil
			case removed:
				h.lose(recipes.ErrNodeDeleted, false)
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := rest(ctx, pause.NextBackOff()); err != nil {
			return err
		}
	}
}

// lose revokes the grant. The servers that still have the key are asked to forget it.
func (h *quorumHold) lose(cause error, gone bool) {
	h.mu.Lock()
	revoke := h.revoke
	h.mu.Unlock()
	revoke(cause, gone)
}

// GiveUp implements recipes.Hold.
func (h *quorumHold) GiveUp(cause error, done func(error)) {
	h.mu.Lock()
	sound := cause == nil && h.trust.remaining() > 0
	first := !h.over
	h.over = true
	h.mu.Unlock()
	if !first {
		done(nil)
		return
	}
	defer close(h.done)
	r := h.b.r
	r.mu.Lock()
	delete(r.holds, h)
	r.mu.Unlock()
	h.b.withdraw(h.token, func(had, lost int, err error) {
		if err == nil && sound && lost >= r.quorum() {
			// Our own clock had trusted it: somebody has removed it, or servers forgot.
			err = fmt.Errorf("%w: %w", recipes.ErrRevoked, recipes.ErrNodeDeleted)
		}
		done(err)
	})
}

// own reports whether the contender with that id is of this process.
func (r *Redlock) own(id string) bool { return r.held(id) != nil }

// tokenOf returns the token of the contender with that id: its own, if we have it, or
// else one that a server gave it.
func (r *Redlock) tokenOf(id string, of recipes.Token) recipes.Token {
	if h := r.held(id); h != nil {
		return h.token
	}
	return of
}

func (r *Redlock) held(id string) *quorumHold {
	r.mu.Lock()
	defer r.mu.Unlock()
	for h := range r.holds {
		if h.b.id == id {
			return h
		}
	}
	return nil
}
