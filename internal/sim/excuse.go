package sim

import (
	"path"
	"strconv"
	"time"
)

// What is done here takes something from a client that is well. The oracle knows
// before it happens, so that it doesn't blame the client.

func (o *oracle) expire(id int64) {
	o.excuse(func() { o.expired[id] = time.Now() })
	o.srv.Expire(id)
}

func (o *oracle) remove(node string) {
	o.excuse(func() { o.removed[node] = time.Now() })
	o.srv.Delete(node)
}

// removeAll removes a directory and what is in it: all that bears its stamp.
func (o *oracle) removeAll(dir string) {
	if stat, ok := o.srv.Stat(dir); ok {
		o.excuse(func() { o.removed[dir+"/"+strconv.FormatInt(stat.Czxid, 16)] = time.Now() })
	}
	o.srv.DeleteAll(dir)
}

// meddle says that nodes of a lock's flows are removed: those who stand before the
// gate may be overtaken, and for a while more of a flow may be in line than its weight
// allows.
func (o *oracle) meddle(lk *lock) { o.excuse(func() { lk.meddled = time.Now() }) }

// meddlingLasts is how long that matters to those who come later.
const meddlingLasts = time.Minute

// wipe has the server lose its data. Everything begins anew, numbers too.
func (o *oracle) wipe(w *world) {
	o.excuse(func() {
		o.epoch++
		o.removed["/"] = time.Now()
		for _, lk := range w.locks {
			lk.highest, lk.exclusive, lk.turns = 0, 0, nil
			lk.deaths = nil
			clear(lk.bySlot)
		}
		for _, p := range o.tickets {
			p.overtaken = nil
		}
	})
	o.srv.Wipe()
	w.makeGuarded()
}

func (o *oracle) excuse(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

// makeGuarded makes the nodes that are written under the locks.
func (w *world) makeGuarded() {
	for _, lk := range w.locks {
		w.srv.Create(guarded(lk), nil)
	}
}

// excused says whether, and since when, somebody has taken the grant's node away,
// which no clock foretells.
func (o *oracle) excused(h *hold) (since time.Time, yes bool) {
	if h.epoch != o.epoch {
		return o.removed["/"], true
	}
	if t, ok := o.expired[h.life.ID()]; ok {
		return t, true
	}
	if t, ok := o.removed[h.node]; ok {
		return t, true
	}
	t, ok := o.removed[path.Dir(h.node)+"/"+h.stamp()]
	return t, ok
}
