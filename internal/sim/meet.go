package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Where several meet, nobody excludes anybody: at a double barrier, whose rounds have
// a size, and in a group.
func (lk *lock) meets() bool { return lk.kind == "double" || lk.kind == "group" }

// checkFull takes down when a round of a double barrier could have been let in.
func (o *oracle) checkFull() {
	for _, lk := range o.rounds {
		if len(o.srv.Children(lk.path)) >= lk.party {
			lk.full = time.Now()
		}
	}
}

// checkRound sees that nobody goes into a double barrier unless enough were there since
// it came, nor while more are inside than belong together.
func (o *oracle) checkRound(h *hold) {
	if h.lk.party == 0 {
		return
	}
	if h.lk.full.Before(h.queued) {
		o.failLocked("round", "%v went in, and %d were not there since it came", h, h.lk.party)
	}
	inside := 1
	for _, other := range o.live {
		if o.beside(h, other) {
			inside++
		}
	}
	if inside > h.lk.party {
		o.failLocked("round", "%v makes %d inside of %d", h, inside, h.lk.party)
	}
}

// beside reports whether other is inside the same directory as h.
func (o *oracle) beside(h, other *hold) bool {
	_, excused := o.excused(other)
	return other != h && other.lk == h.lk && other.epoch == h.epoch && other.stamp() == h.stamp() && !excused && isOpen(other.g.Done())
}

// leave leaves a double barrier, and sees that those have left who were inside when it
// began to leave.
func (k *worker) leave(ctx context.Context, h *hold) error {
	var with []*hold
	k.w.o.excuse(func() {
		for _, other := range k.w.o.live {
			if isOpen(h.g.Done()) && k.w.o.beside(h, other) {
				with = append(with, other)
			}
		}
	})
	err := h.ask.pass.Leave(ctx)
	if errors.Is(err, recipes.ErrSessionClosed) {
		return nil
	}
	k.w.o.mu.Lock()
	defer k.w.o.mu.Unlock()
	if _, excused := k.w.o.excused(h); err != nil || excused {
		return err
	}
	for _, other := range with {
		if k.w.o.beside(h, other) {
			k.w.o.failLocked("round", "%v has left, and %v is still inside", h, other)
		}
	}
	return nil
}

// follow takes down what one process sees of a group, until its session is closed.
func (h *handles) follow() {
	o := h.p.c.w.o
	for members, err := range h.group.Members(context.Background()) {
		if err != nil {
			if !errors.Is(err, recipes.ErrSessionClosed) {
				o.fail("error", "client %d follows %s: %v", h.p.c.n, h.lk.path, err)
			}
			return
		}
		ids := make([]string, len(members))
		for i, m := range members {
			ids[i] = m.ID
		}
		o.excuse(func() { h.seen = ids })
	}
}

// probeGroup has every client join, and sees that all see all, and that nobody is seen
// any more when they have left.
func (w *world) probeGroup(ctx context.Context, lk *lock) {
	var joined []*recipes.Grant
	for _, c := range w.clients {
		m, err := c.now().locks[lk][0].group.Join(ctx, nil)
		if err != nil {
			w.o.fail("turn", "%s can't be joined at the end: %v", lk.path, err)
			return
		}
		joined = append(joined, m.Grant)
	}
	w.checkSeen(lk, len(joined))
	for _, g := range joined {
		g.Release(ctx)
	}
	w.checkSeen(lk, 0)
}

func (w *world) checkSeen(lk *lock, n int) {
	time.Sleep(time.Second)
	there := slices.Sorted(slices.Values(w.srv.Children(lk.path)))
	for _, c := range w.clients {
		for _, h := range c.now().locks[lk] {
			var seen []string
			w.o.excuse(func() { seen = slices.Sorted(slices.Values(h.seen)) })
			if len(seen) != n || !slices.Equal(seen, there) {
				w.o.fail("members", "client %d sees %q in %s, want %d: %q", c.n, seen, lk.path, n, there)
			}
		}
	}
}
