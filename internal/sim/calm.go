package sim

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

const (
	// turnWithin is how long after the last fault everybody must have had its turn:
	// sessions that are to be replaced are, old ones have expired, lock delays have
	// passed, and a wait whose event was lost has looked again, which is once a
	// minute.
	turnWithin = 3 * time.Minute
	// settledWithin is when nothing may be left of what was given up.
	settledWithin = 40 * time.Second
)

// calm ends the faults, and sees that everybody who waits gets its turn, and that
// nothing is left behind: while the sessions still live, and when they are closed.
func (w *world) calm() {
	w.srv.Heal()
	for _, s := range w.srv.Sessions() {
		w.srv.StaleReads(s.ID, false)
	}
	for _, c := range w.clients {
		c.now().link.heal()
	}
	close(w.stop)
	w.o.note("calm")
	done := make(chan struct{})
	go func() {
		w.workers.Wait()
		close(done)
	}()
	if !within(turnWithin, done) {
		w.starved()
	}
	w.giveUp()
	<-done
	if isOpen(w.o.broken) {
		time.Sleep(settledWithin)
		w.checkLeft(delayed)
		w.probe()
		time.Sleep(settledWithin)
		w.checkLeft("")
	}
	w.closeAll()
	w.o.reckon()
}

func within(d time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// starved reports who still waits.
func (w *world) starved() {
	w.o.mu.Lock()
	defer w.o.mu.Unlock()
	var waits []string
	for _, k := range w.all {
		if k.waits != "" {
			waits = append(waits, k.waits)
		}
	}
	w.o.failLocked("turn", "after %v without faults: %s\n%s", turnWithin, strings.Join(waits, "; "), w.srv.Tree())
}

// delayed is the child of a lock whose holder died and asked for a lock delay. It keeps
// the record of that until somebody comes, so it may be there while nobody does.
const delayed = "delay-2147483647"

// checkLeft sees that no contender is left, although its session may live, and nothing
// else but a child of that name.
func (w *world) checkLeft(but string) {
	for _, s := range w.srv.Sessions() {
		if s.Ephemerals > 0 {
			w.o.fail("left behind", "%d nodes of session %#x:\n%s", s.Ephemerals, s.ID, w.srv.Tree())
		}
	}
	for _, lk := range w.locks {
		names := slices.DeleteFunc(w.srv.Children(lk.path), func(name string) bool { return name == but })
		if len(names) > 0 {
			w.o.fail("left behind", "%s: %q", lk.path, names)
		}
	}
	// What is left of watches: a directory that somebody waited for.
	if n := w.srv.Watches(); n > 4*len(w.locks)*len(w.clients) {
		w.o.fail("left behind", "%d watches", n)
	}
}

// probe takes every lock once more.
func (w *world) probe() {
	c := w.clients[0]
	for _, lk := range w.locks {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		k := &worker{w: w, c: c, lk: lk, dice: dice(w.Seed, 2)}
		a := lk.draw(k.dice)
		a.try, a.ticket = false, false
		if lk.kind == "group" {
			w.probeGroup(ctx, lk)
		}
		if lk.meets() {
			cancel()
			continue
		}
		via := c.now().locks[lk][0]
		g, err := via.acquire(ctx, &a, k.dice)
		if err != nil {
			w.o.fail("turn", "%s can't be had at the end: %v\n%s", lk.path, err, w.srv.Tree())
		} else {
			h := k.newHold(via, g, a)
			w.o.begin(h)
			w.o.releases(h)
			g.Release(ctx)
		}
		cancel()
	}
}

// closeAll closes the sessions: then nothing is left at all.
func (w *world) closeAll() {
	for _, c := range w.clients {
		c.now().close(false)
	}
	if !isOpen(w.o.broken) {
		return
	}
	if left := w.srv.Sessions(); len(left) > 0 {
		w.o.fail("left behind", "sessions: %v", left)
	}
	if n := w.srv.Watches(); n > 0 {
		w.o.fail("left behind", "%d watches of no session", n)
	}
}

// reckon looks at what can be told only at the end.
func (o *oracle) reckon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reckonWrites()
	for k, f := range o.seen {
		lost := 0
		for _, h := range f.holds {
			if errors.Is(h.g.Err(), recipes.ErrRevoked) {
				lost++
			} else if h.g.Err() == nil {
				o.failLocked("revocation", "%v never ended", h)
			}
		}
		// A reader under a writer has the same token; not every one came to be seen.
		shared := f.holds == nil || f.holds[0].lk.kind == "rwlock"
		if f.told < lost || f.told > lost && !shared {
			o.failLocked("callback", "%d grants of %v were revoked, %d callbacks were called", lost, k, f.told)
		}
	}
}

// reckonWrites sees that guarded writes came in the order of the tokens: so none was
// carried out after another's grant had begun to be used.
func (o *oracle) reckonWrites() {
	slices.SortFunc(o.writes, func(a, b write) int {
		return cmp.Or(cmp.Compare(a.lk.path, b.lk.path), cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.zxid, b.zxid))
	})
	for i, w := range o.writes[min(1, len(o.writes)):] {
		if prev := o.writes[i]; prev.lk == w.lk && prev.epoch == w.epoch && w.token < prev.token {
			o.failLocked("guarded writes", "%s: token %v (late: %v) wrote after token %v", w.lk.path, w.token, w.late, prev.token)
		}
	}
}
