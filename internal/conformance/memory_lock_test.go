package conformance_test

import (
	"context"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/internal/conformance"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// A memory is a lock object on the server in memory.
type memory struct {
	c    *client
	name string
	set  recipes.Settings

	mu   sync.Mutex
	lost bool // of no use, unless the flaw lossIsForever makes something of it
}

func (m *memory) fail(op string, err error) error {
	return &recipes.Error{Op: op, Path: m.name, Reason: err}
}

func (m *memory) acquire(ctx context.Context, op string, w conformance.Way, try bool) (*recipes.Grant, error) {
	f := m.c.s.flaws
	if ctx.Err() != nil && !f.entryIsUnchecked {
		return nil, m.fail(op, context.Cause(ctx))
	}
	set := m.set
	if f.notReentrant {
		set.Reentrant = false
	}
	if !f.ownContextIsUnknown {
		if g, err := recipes.Nested(ctx, set, "memory", m.name); g != nil {
			return g, nil
		} else if err != nil {
			return nil, m.fail(op, err)
		}
	}
	for again := false; ; again = true {
		l, err := m.c.alive(ctx)
		if err != nil {
			return nil, m.fail(op, err)
		}
		g, err := m.contend(ctx, l, w, try, again)
		if g != nil {
			return g, nil
		}
		if err == context.Canceled && f.neitherGrantNorError {
			return nil, nil
		}
		lost := isOver(l) && l.cause != recipes.ErrSessionClosed || err == recipes.ErrNodeDeleted
		if !lost || ctx.Err() != nil || m.set.FailOnLoss && !f.neverFailsOnLoss || f.alwaysFailsOnLoss {
			return nil, m.fail(op, err)
		}
	}
}

// contend is one contender's way to a grant.
func (m *memory) contend(ctx context.Context, l *life, w conformance.Way, try, again bool) (*recipes.Grant, error) {
	s := m.c.s
	if err := m.c.request(ctx, l); err != nil {
		return nil, err
	}
	e := &entry{lock: m.name, takes: w.Takes, life: l, set: m.set, turn: make(chan struct{}), gone: make(chan struct{})}
	if s.ownersAreLost {
		e.set.Owner = "nobody"
	}
	if err := s.enter(e, try, again); err != nil {
		return nil, err
	}
	if err := m.wait(ctx, e); err != nil {
		if !s.waitersStay {
			m.c.leave(e, false)
		}
		return nil, err
	}
	if err := m.c.request(ctx, l); err != nil { // to see that it is still there
		m.c.leave(e, false)
		return nil, err
	}
	if ctx.Err() != nil && !s.tieIsLeftToChance && !s.entryIsUnchecked {
		m.c.leave(e, false)
		return nil, context.Cause(ctx)
	}
	return m.grant(ctx, e)
}

func (m *memory) wait(ctx context.Context, e *entry) error {
	done := ctx.Done()
	if m.c.s.contextIsIgnored {
		done = nil
	}
	select {
	case <-e.turn:
		return nil
	case <-e.gone:
		if err := m.c.reach(ctx, e.life); err != nil {
			return err
		}
		if isOver(e.life) {
			return e.life.cause
		}
		return recipes.ErrNodeDeleted
	case <-e.life.over:
		return e.life.cause
	case <-done:
		return context.Cause(ctx)
	}
}

// leave removes an entry in the background, as soon as the server can be reached.
func (c *client) leave(e *entry, died bool) (left chan struct{}) {
	left = make(chan struct{})
	go func() {
		defer close(left)
		if c.request(context.Background(), e.life) == nil {
			c.s.remove(e, died)
		}
	}()
	return left
}

func (m *memory) grant(ctx context.Context, e *entry) (*recipes.Grant, error) {
	s := m.c.s
	h := &hold{m: m, e: e, ended: make(chan struct{})}
	set := m.set
	if s.callbacksBlock || s.callbacksAreForgotten {
		set.OnRevoke = nil
	}
	if s.maxHoldIsForgotten {
		set.MaxHold = 0
	}
	m.mu.Lock()
	broken := m.lost && s.lossIsForever
	m.mu.Unlock()
	if broken {
		m.c.leave(e, false)
		return nil, recipes.ErrSessionLost
	}
	h.mu.Lock() // a loss waits until revoke is known
	h.g, h.revoke = recipes.NewGrant(recipes.Spec{
		Realm: "memory", Path: m.name, Mode: "lock", Token: e.token, Settings: set, Hold: h,
	})
	h.mu.Unlock()
	m.c.mu.Lock()
	over := isOver(e.life)
	if !over {
		e.life.holds[h] = struct{}{}
	}
	m.c.mu.Unlock()
	if over && !s.lossIsIgnored {
		h.lose(e.life.cause, true) // it was granted, and lost at once
	}
	go h.watch()
	if s.contextBoundsTheHold {
		context.AfterFunc(ctx, func() { h.lose(context.Cause(ctx), false) })
	}
	return h.g, nil
}

// A hold is a grant's entry.
type hold struct {
	m     *memory
	e     *entry
	ended chan struct{}
	once  sync.Once

	mu     sync.Mutex
	g      *recipes.Grant
	revoke func(error, bool) bool
}

// watch hears of a removal by somebody.
func (h *hold) watch() {
	select {
	case <-h.ended:
	case <-h.e.gone:
		heard := h.m.c.reach(context.Background(), h.e.life) == nil
		if heard && !isOver(h.e.life) && !h.m.c.s.removalGoesUnseen {
			// With the flaw, what is given up is whatever is first in line.
			h.lose(recipes.ErrNodeDeleted, !h.m.c.s.lateReleaseHitsOthers)
		}
	}
}

func (h *hold) lose(cause error, gone bool) {
	h.mu.Lock()
	revoke := h.revoke
	h.mu.Unlock()
	h.once.Do(func() { close(h.ended) })
	h.m.mu.Lock()
	h.m.lost = true
	h.m.mu.Unlock()
	if !revoke(cause, gone) {
		return
	}
	if h.m.c.s.callbacksBlock || h.m.c.s.callbacksComeTwice {
		h.tell()
	}
}

func (h *hold) tell() {
	for _, fn := range h.m.set.OnRevoke {
		func() {
			defer func() { recover() }()
			fn(recipes.Revocation{Path: h.m.name, Token: h.e.token, Owner: h.m.set.Owner, Cause: h.g.Err()})
		}()
	}
}

// Remaining implements recipes.Hold.
func (h *hold) Remaining() time.Duration {
	c := h.m.c
	c.mu.Lock()
	defer c.mu.Unlock()
	switch l := h.e.life; {
	case c.s.lossIsIgnored, l.until.IsZero():
		return c.trust()
	default:
		return time.Until(l.until)
	}
}

// Verify implements recipes.Hold.
func (h *hold) Verify(ctx context.Context) error {
	if h.m.c.s.verifyIsBlind {
		return nil
	}
	if err := h.m.c.request(ctx, h.e.life); err != nil {
		if h.m.c.s.noAnswerIsALoss {
			h.lose(recipes.ErrSessionLost, false)
		}
		return err
	}
	if h.m.c.s.verifySeesGhosts || !h.m.c.s.there(h.e) {
		h.lose(recipes.ErrNodeDeleted, true)
	}
	return nil
}

// GiveUp implements recipes.Hold.
func (h *hold) GiveUp(cause error, done func(error)) {
	c := h.m.c
	h.once.Do(func() { close(h.ended) })
	c.mu.Lock()
	delete(h.e.life.holds, h)
	c.mu.Unlock()
	if c.s.releaseIsRevocation {
		go h.tell()
	}
	switch {
	case c.s.releaseIsForgotten:
		done(nil)
		return
	case c.s.lateReleaseHitsOthers && cause != nil:
		go func() {
			time.Sleep(time.Second) // of the bubble
			c.s.mu.Lock()
			defer c.s.mu.Unlock()
			if line := c.s.lines[h.e.lock]; len(line) > 0 {
				c.s.removeLocked(line[0], false)
			}
			done(nil)
		}()
		return
	}
	left := c.leave(h.e, cause != nil)
	go func() {
		<-left
		done(nil)
	}()
}
