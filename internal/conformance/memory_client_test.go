package conformance_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/internal/conformance"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// A client of the server in memory, with one life after the other, as a session
// of ZooKeeper has.
type client struct {
	w *world
	s *server

	mu     sync.Mutex
	closed bool
	life   *life
	step   func()
	mended chan struct{} // closed and replaced when it is no longer cut off
	isCut  bool
}

// A life is one session with the server.
type life struct {
	over    chan struct{} // closed when the client knows
	cause   error
	until   time.Time // of trust, while cut off
	expired bool      // on the server, and guarded by it
	holds   map[*hold]struct{}
}

func newLife() *life { return &life{over: make(chan struct{}), holds: map[*hold]struct{}{}} }

// trust is for how long a client believes in its session without hearing from
// the server.
func (c *client) trust() time.Duration {
	if c.s.trustsTooLong {
		return c.s.lifetime * 6 / 5
	}
	return c.s.lifetime / 4 // a margin for machines that are busy
}

// request is what each call to the server begins with.
func (c *client) request(ctx context.Context, l *life) error {
	if err := c.reach(ctx, l); err != nil {
		return err
	}
	c.mu.Lock()
	step := c.step
	c.mu.Unlock()
	if step != nil {
		step()
	}
	return nil
}

// reach waits while the client is cut off.
func (c *client) reach(ctx context.Context, l *life) error {
	for {
		c.mu.Lock()
		isCut, mended := c.isCut, c.mended
		c.mu.Unlock()
		if !isCut {
			return nil
		}
		done := ctx.Done()
		if c.s.cutOffIsDeaf {
			done = nil
		}
		select {
		case <-mended:
		case <-l.over:
			return l.cause
		case <-done:
			return context.Cause(ctx)
		}
	}
}

// alive waits for a life, which can only begin while the client isn't cut off.
func (c *client) alive(ctx context.Context) (*life, error) {
	for {
		c.mu.Lock()
		if !c.closed && !c.isCut && isOver(c.life) {
			c.life = newLife()
		}
		l, over, mended, closed := c.life, isOver(c.life), c.mended, c.closed
		c.mu.Unlock()
		if closed {
			return nil, recipes.ErrSessionClosed
		}
		if !over {
			return l, nil
		}
		select {
		case <-mended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func isOver(l *life) bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// end ends a life, for the client.
func (c *client) end(l *life, cause error) {
	c.mu.Lock()
	if isOver(l) {
		c.mu.Unlock()
		return
	}
	l.cause = cause
	close(l.over)
	holds := l.holds
	l.holds = nil
	c.mu.Unlock()
	if c.s.lossIsIgnored || c.s.closingKeeps && cause == recipes.ErrSessionClosed {
		return
	}
	revoke := func() {
		for h := range holds {
			h.lose(cause, true)
		}
	}
	if c.s.callbacksBlock {
		go revoke() // they are called from here, one after the other
	} else {
		revoke()
	}
}

// CutOff implements conformance.Client.
func (c *client) CutOff() {
	c.mu.Lock()
	l := c.life
	c.isCut = true
	l.until = time.Now().Add(c.trust())
	c.mu.Unlock()
	stillCut := func(f func()) func() {
		return func() {
			c.mu.Lock()
			isCut := c.isCut && c.life == l
			c.mu.Unlock()
			if isCut {
				f()
			}
		}
	}
	time.AfterFunc(c.trust(), stillCut(func() { c.end(l, recipes.ErrSessionLost) }))
	time.AfterFunc(c.s.lifetime, stillCut(func() { c.s.expire(l) }))
}

func (c *client) heal() {
	c.mu.Lock()
	l := c.life
	wasCut := c.isCut
	c.isCut = false
	l.until = time.Time{}
	close(c.mended)
	c.mended = make(chan struct{})
	c.mu.Unlock()
	if wasCut && isOver(l) {
		c.s.expire(l) // it asks for that itself when it comes back
	}
}

// Lose implements conformance.Client.
func (c *client) Lose() error {
	c.mu.Lock()
	l := c.life
	c.mu.Unlock()
	c.end(l, recipes.ErrSessionLost)
	c.s.expire(l)
	return recipes.ErrSessionLost
}

// OnStep implements conformance.Client.
func (c *client) OnStep(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step = f
}

// Close implements conformance.Client. What is held is released.
func (c *client) Close() error {
	c.mu.Lock()
	c.closed = true
	l := c.life
	holds := make([]*hold, 0, len(l.holds))
	for h := range l.holds {
		holds = append(holds, h)
	}
	c.mu.Unlock()
	if !c.s.waitsOutliveClosing {
		c.end(l, recipes.ErrSessionClosed)
	}
	if c.s.closingLeaves {
		return nil
	}
	for _, h := range holds {
		c.s.remove(h.e, false)
	}
	c.s.expire(l)
	return nil
}

// Lock implements conformance.Client.
func (c *client) Lock(name string, opts ...recipes.Option) (conformance.Lock, error) {
	set, err := recipes.NewSettings(opts, nil)
	if err != nil {
		return conformance.Lock{}, err
	}
	m := &memory{c: c, name: name, set: set}
	key := "memory " + name
	if c.s.keysDiffer {
		key = rand.Text()
	}
	l := conformance.Lock{Contenders: m.contenders, Key: func() string { return key }}
	for _, w := range c.w.b.ways {
		l.Enter = append(l.Enter, conformance.Entry{
			Acquire: func(ctx context.Context) (*recipes.Grant, error) { return m.acquire(ctx, "lock", w, false) },
			Try:     func(ctx context.Context) (*recipes.Grant, error) { return m.acquire(ctx, "trylock", w, true) },
		})
	}
	return l, nil
}

func (m *memory) contenders(ctx context.Context) ([]recipes.Contender, error) {
	l, err := m.c.alive(ctx)
	if err == nil {
		err = m.c.request(ctx, l)
	}
	if err != nil {
		return nil, m.fail("contenders", err)
	}
	s := m.c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []recipes.Contender
	for i, e := range s.lines[m.name] {
		c := recipes.Contender{
			Owner: e.set.Owner, Token: e.token, Since: e.since, Kind: "lock", ID: fmt.Sprint(e.id),
			Holding: e.granted || s.waitersSeemToHold && i == 1, Mine: e.life == l || s.allSeemMine,
		}
		if s.listIsBackward {
			list = append([]recipes.Contender{c}, list...)
		} else {
			list = append(list, c)
		}
	}
	return list, nil
}
