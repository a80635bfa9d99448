package conformance

import (
	"context"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var reentryChecks = []check{
	{
		name:    "LockedUnderItsOwnContext",
		promise: "a call under the context of a live grant of the same lock fails with ErrDeadlock at once, also through another object or client; another lock is another matter",
		way:     underItsOwnContext,
	},
	{
		name:    "Reentrant",
		promise: "with Reentrant, a call under the context of a live grant returns a nested grant with the same token, and the lock is given up with the last of them, in whatever order they are released",
		needs:   []Capability{Reentry},
		way:     reentrant,
	},
	{
		name:    "LostWhileNested",
		promise: "a loss ends a grant and all that are nested in it, and each hears of it once",
		needs:   []Capability{Reentry, Losing},
		way:     lostWhileNested,
	},
}

func underItsOwnContext(e *env, w int) {
	c := e.Client()
	l := e.on(c)
	s := e.hold(l, w)
	ctx, cancel := context.WithCancel(s.g.Context(e.t.Context()))
	defer cancel()
	for _, l := range []Lock{l, e.on(c), e.fresh()} {
		for _, acquire := range []Acquire{l.Enter[w].Acquire, l.Enter[w].Try} {
			if acquire != nil {
				e.startUnder(ctx, acquire, nil).fails(recipes.ErrDeadlock)
			}
		}
	}
	e.queued(s.line)
	e.release(e.startUnder(ctx, e.named(c, lockY).Enter[w].Acquire, nil).grant())
	s.release()
	e.startUnder(ctx, l.Enter[w].Acquire, nil).fails(recipes.ErrReleased) // the context's cause
	e.release(e.get(l, w))
}

func reentrant(e *env, w int) {
	c := e.Client()
	l := e.on(c, recipes.Reentrant())
	s := e.hold(l, w)
	grants := []*recipes.Grant{s.g}
	for _, l := range []Lock{l, e.on(c, recipes.Reentrant())} {
		for _, acquire := range []Acquire{l.Enter[w].Acquire, l.Enter[w].Try} {
			if acquire == nil {
				continue
			}
			outer := grants[len(grants)-1]
			g := e.startUnder(outer.Context(e.t.Context()), acquire, nil).grant()
			if g == outer || g.Token() != s.g.Token() {
				e.t.Errorf("nested: token %v, want %v", g.Token(), s.g.Token())
			}
			grants = append(grants, g)
		}
	}
	e.queued(s.line)
	next := s.wait(e.fresh(), 1)
	// The outermost goes first, the innermost last but one.
	n := len(grants)
	grants[n-1], grants[n-2] = grants[n-2], grants[n-1]
	for i, g := range grants {
		if !next.pending() {
			e.t.Errorf("given up while %d grants were live", n-i)
		}
		if g.Err() != nil {
			e.t.Error(g.Err())
		}
		e.release(g, g)
	}
	s.part()
	e.release(next.grant())
}

func lostWhileNested(e *env, w int) {
	c, revs := e.Client(), newRevocations()
	l := e.on(c, recipes.Reentrant(), revs.option())
	outer := e.get(l, w)
	inner := e.startUnder(outer.Context(e.t.Context()), l.Enter[w].Acquire, nil).grant()
	gone := e.startUnder(outer.Context(e.t.Context()), l.Enter[w].Acquire, nil).grant()
	e.release(gone)
	e.witness.pardon(outer)
	reason := c.Lose()
	for _, g := range []*recipes.Grant{outer, inner} {
		e.await(g.Done(), "Done")
		e.ended(g, reason)
	}
	e.release(gone)
	e.release(e.get(l, w))
	e.Settle()
	if list := revs.all(); len(list) != 2 {
		e.t.Errorf("two live grants, but OnRevoke was called %d times", len(list))
	}
}
