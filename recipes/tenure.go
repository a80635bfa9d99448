package recipes

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A tenure is one hold on the server with the grants that share it: the first,
// and those nested in it. It is given up when the last of them is released, and
// all of them end when it is revoked.
type tenure struct {
	realm, path, mode string
	token             Token
	hold              Hold

	mu     sync.Mutex
	over   bool
	grants map[*Grant]struct{} // the live ones
}

func newTenure(spec Spec) *tenure {
	return &tenure{
		realm:  spec.Realm,
		path:   spec.Path,
		mode:   spec.Mode,
		token:  spec.Token,
		hold:   spec.Hold,
		grants: make(map[*Grant]struct{}),
	}
}

// join makes one more grant of the tenure; nil if it is over.
func (t *tenure) join(set Settings) *Grant {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return nil
	}
	g := &Grant{
		path:      t.path,
		token:     t.token,
		set:       set,
		tenure:    t,
		ending:    newEnding(),
		confirmed: make(chan struct{}),
	}
	t.grants[g] = struct{}{}
	if set.MaxHold > 0 {
		g.maxHold = time.AfterFunc(set.MaxHold, func() { t.revoke(ErrHeldTooLong, false) })
	}
	return g
}

func (t *tenure) live() bool {
	t.check()
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.over
}

// check revokes the tenure if its trust window is over, whatever the timers of a
// process that was stopped may think.
func (t *tenure) check() {
	t.mu.Lock()
	over := t.over
	t.mu.Unlock()
	if !over && t.hold.Remaining() <= 0 {
		t.revoke(ErrSessionLost, false)
	}
}

// leave ends g by release, and gives the hold up if g was the last. It does
// nothing if g has ended.
func (t *tenure) leave(g *Grant) {
	t.mu.Lock()
	_, live := t.grants[g]
	if !live {
		t.mu.Unlock()
		return
	}
	delete(t.grants, g)
	last := len(t.grants) == 0
	if last {
		t.over = true
	}
	g.finish(released(t.path))
	t.mu.Unlock()

	if !last {
		close(g.confirmed)
		return
	}
	t.hold.GiveUp(nil, func(err error) {
		g.failure = err
		close(g.confirmed)
	})
}

// revoke ends all grants of the tenure, if it is not over, and reports whether
// it did so. The lock stays taken throughout, so that whoever sees the tenure
// over also sees every grant of it ended.
func (t *tenure) revoke(cause error, gone bool) bool {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return false
	}
	t.over = true
	err := revoked(t.path, cause)
	for g := range t.grants {
		g.finish(err)
		close(g.confirmed)
		g.announce(err)
	}
	clear(t.grants)
	t.mu.Unlock()

	if !gone {
		t.hold.GiveUp(cause, func(error) {})
	}
	return true
}

func (g *Grant) finish(err error) {
	if g.maxHold != nil {
		g.maxHold.Stop()
	}
	g.ending.finish(err)
}

type heldKey struct{ realm, path string }

// A held is what a context says of one lock: whose it is, and what the context
// says beside, where a call chain holds it in several modes.
type held struct {
	t     *tenure
	outer *held
}

// mark returns ctx with t in it.
func (t *tenure) mark(ctx context.Context) context.Context {
	key := heldKey{t.realm, t.path}
	outer, _ := ctx.Value(key).(*held)
	return context.WithValue(ctx, key, &held{t, outer})
}

// heldIn returns the innermost live tenure in one of the modes, or in any if there
// are none.
func heldIn(ctx context.Context, realm, path string, modes []string) *tenure {
	h, _ := ctx.Value(heldKey{realm, path}).(*held)
	for ; h != nil; h = h.outer {
		if (len(modes) == 0 || slices.Contains(modes, h.t.mode)) && h.t.live() {
			return h.t
		}
	}
	return nil
}
