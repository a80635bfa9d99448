package fallback

import (
	"context"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// passesLast bounds how long goroutines of one client keep a lock among themselves.
const passesLast = 100 * time.Millisecond

// A gate is where the goroutines of one client that want the same lock queue before
// one of them goes to the server: at most one of them stands in line there. Whoever is
// through the gate has the baton, and passes it on in the end.
type gate struct {
	c     *Client
	key   string
	taken bool
	line  []*visitor // in order of arrival; with taken and the rest guarded by c.mu
}

// A visitor waits at a gate.
type visitor struct {
	l     *lock
	turn  chan baton // has room for one
	since time.Time
}

// A baton is the right to ask the server, or the lock itself.
type baton struct {
	h     *hold
	token recipes.Token
	n     int // how often it was passed on
}

// through returns the baton when the turn has come; with try, at once or ErrBusy.
func (l *lock) through(ctx context.Context, try bool) (*gate, baton, error) {
	c := l.c
	c.mu.Lock()
	g := c.gates[l.keys[0]]
	if g == nil {
		g = &gate{c: c, key: l.keys[0]}
		c.gates[g.key] = g
	}
	if !g.taken {
		g.taken = true
		c.mu.Unlock()
		return g, baton{}, nil
	}
	if try {
		c.mu.Unlock()
		return nil, baton{}, recipes.ErrBusy
	}
	v := &visitor{l, make(chan baton, 1), time.Now()}
	g.line = append(g.line, v)
	c.mu.Unlock()

	select {
	case b := <-v.turn:
		if c.ended(ctx) == nil {
			return g, b, nil
		}
		g.giveUp(b)
		return nil, baton{}, c.ended(ctx)
	case <-ctx.Done():
	case <-c.closing.Done():
	}
	if !g.remove(v) { // its turn came at the same time
		g.giveUp(<-v.turn)
	}
	return nil, baton{}, c.ended(ctx)
}

func (g *gate) remove(v *visitor) bool {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	for i, w := range g.line {
		if w == v {
			g.line = append(g.line[:i:i], g.line[i+1:]...)
			return true
		}
	}
	return false
}

// giveUp is what a visitor does with a baton that it doesn't want any more.
func (g *gate) giveUp(b baton) {
	if b.h == nil {
		g.next()
		return
	}
	if !g.pass(b) {
		b.h.GiveUp(nil, func(error) {}) // and then next
	}
}

// next lets one more go to the server.
func (g *gate) next() {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	g.hand(baton{})
}

// hand gives the baton to the first in line. The lock must be held.
func (g *gate) hand(b baton) {
	if len(g.line) == 0 {
		g.taken = false
		delete(g.c.gates, g.key)
		return
	}
	first := g.line[0]
	g.line = g.line[1:]
	first.turn <- b
}

// pass gives the lock itself to the first in line, if it may have it: then there is
// nothing to ask of the server. Each has a token of those that were taken together.
func (g *gate) pass(b baton) bool {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	if len(g.line) == 0 || b.n >= b.h.l.cfg.passes || b.h.since.elapsed() > passesLast {
		return false
	}
	if !g.line[0].l.takesOver(b.h.l) || !b.h.pass() {
		return false
	}
	g.hand(baton{b.h, b.token + 1, b.n + 1})
	return true
}

// takesOver reports whether a hold of the other object will do for this one.
func (l *lock) takesOver(other *lock) bool {
	return l.cfg == other.cfg && !l.cfg.fixed && l.set.LockDelay == other.set.LockDelay
}

// A turn is what stands behind a grant that may be passed on.
type turn struct {
	*hold
	g *gate
	b baton
}

// GiveUp implements recipes.Hold.
func (t *turn) GiveUp(cause error, done func(error)) {
	if cause == nil && t.g.pass(t.b) {
		done(nil)
		return
	}
	t.hold.GiveUp(cause, done)
}

// acquireThrough is acquire for locks whose goroutines queue in the process first.
func (l *lock) acquireThrough(ctx context.Context, w want, try bool) (*recipes.Grant, error) {
	for {
		g, b, err := l.through(ctx, try)
		if err != nil {
			return nil, err
		}
		if b.h == nil {
			if b.h, err = l.acquire(ctx, w, try); err != nil {
				g.next()
				return nil, err
			}
			b.h.left = g.next
			b.token = b.h.token
		}
		if granted, err := b.h.grant(l, b.token, &turn{b.h, g, b}); err == nil {
			return granted, nil
		} else if !l.again(b.h) {
			return nil, err
		}
	}
}

// acquireDirectly is acquire for locks where each goroutine stands in line on the
// server.
func (l *lock) acquireDirectly(ctx context.Context, w want, try bool) (*recipes.Grant, error) {
	for {
		h, err := l.acquire(ctx, w, try)
		if err != nil {
			return nil, err
		}
		if g, err := h.grant(l, h.token, h); err == nil {
			return g, nil
		} else if !l.again(h) {
			return nil, err
		}
	}
}

// again ends a hold that was lost before it was granted, and reports whether to try
// for another.
func (l *lock) again(h *hold) bool {
	h.GiveUp(nil, func(error) {}) // as nobody has had it, there is no delay
	return l.c.closing.Err() == nil && !l.set.FailOnLoss
}
