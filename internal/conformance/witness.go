package conformance

import (
	"slices"
	"sync"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A witness sees every grant of one lock as soon as the program has it, and knows
// of the others only what a program knows that does not ask: their Done.
type witness struct {
	mu    sync.Mutex
	held  []seen
	token recipes.Token // of the last exclusive grant
	count int
}

type seen struct {
	g     *recipes.Grant
	takes int
}

func (w *witness) saw(e *env, way int, g *recipes.Grant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	if isDone(g.Done()) {
		return // lost on its way to us: no claim is made
	}
	w.held = slices.DeleteFunc(w.held, func(s seen) bool { return isDone(s.g.Done()) })
	takes := e.s.Ways[way].Takes
	sum := takes
	for _, s := range w.held {
		sum += s.takes
	}
	if sum > e.s.Size {
		e.t.Errorf("%s granted although %d of %d are held by %d others", e.s.Ways[way].Name, sum-takes, e.s.Size, len(w.held))
	}
	w.held = append(w.held, seen{g, takes})
	if !e.s.has(Tokens) {
		return
	}
	if g.Token() == 0 {
		e.t.Error("a grant without a token")
	}
	exclusive := takes == e.s.Size
	if g.Token() < w.token || exclusive && g.Token() == w.token {
		e.t.Errorf("token %v after %v", g.Token(), w.token)
	}
	if exclusive {
		w.token = g.Token()
	}
}

// pardon takes g out of sight. It is for faults that no client can know of before
// the next is granted: what it held was taken away on the server ahead of time.
func (w *witness) pardon(g *recipes.Grant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = slices.DeleteFunc(w.held, func(s seen) bool { return s.g == g })
}
