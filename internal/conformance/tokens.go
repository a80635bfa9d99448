package conformance

import (
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

var tokenChecks = []check{
	{
		name:    "Tokens",
		promise: "each later exclusive grant has a larger token, whoever gets it: after a release, a loss, a time of disuse, and after everything was removed from the server",
		needs:   []Capability{Tokens},
		way:     tokens,
	},
}

func tokens(e *env, w int) {
	c, other := e.Client(), e.fresh()
	l := e.on(c)
	var last recipes.Token
	next := func(l Lock, after string) *recipes.Grant {
		e.t.Helper()
		g := e.get(l, w)
		if exclusive := e.s.Ways[w].Takes == e.s.Size; exclusive && g.Token() <= last {
			e.t.Errorf("%s: token %v after %v", after, g.Token(), last)
		}
		last = g.Token()
		return g
	}
	for range 3 {
		e.release(next(l, "released"))
		e.release(next(other, "released"))
	}
	if e.s.has(Losing) {
		g := next(l, "released")
		e.witness.pardon(g)
		c.Lose()
		e.await(g.Done(), "Done")
		e.release(next(other, "lost"))
		e.release(next(l, "lost"))
	}
	if e.s.has(Removing) {
		g := next(l, "released")
		e.witness.pardon(g)
		e.RemoveAll(lockX)
		e.await(g.Done(), "Done")
		e.release(next(other, "removed while it was held"))
		e.empty()
		e.RemoveAll(lockX)
		e.release(next(l, "removed while it was free"))
		e.release(next(other, "removed while it was free"))
	}
	e.empty()
	e.Pass(5 * time.Minute)
	e.release(next(e.fresh(), "after a time of disuse"))
}
