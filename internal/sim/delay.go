package sim

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// A death is the loss of a holder that had asked for a lock delay: its node went, and
// it had not been released. Whoever comes next in this directory waits. The record of
// it goes with the directory.
type death struct {
	h  *hold
	at time.Time
}

// wishes returns the lock delay that a client asks for. One of them never does: it
// waits for the others' all the same.
func (lk *lock) wishes(c *client) time.Duration {
	if c.n == 1 {
		return 0
	}
	return lk.delay
}

// watchDeath takes down when h dies, if a lock delay follows. The server's clock tells:
// a delay begins when somebody notices, which is not before.
func (o *oracle) watchDeath(h *hold) {
	if h.lk.wishes(h.c) == 0 || h.ask.mode == "read" || h.ask.under != nil {
		return
	}
	go func() { // ends with the node or the server
		gone := func(v *zktest.View) bool {
			stat, there := v.Stat(h.node)
			return !there || stat.EphemeralOwner != h.life.ID()
		}
		if o.srv.WaitFor(context.Background(), gone) != nil {
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if h.users > 0 && !h.via.p.closing {
			at := time.Now()
			if since, excused := o.excused(h); excused { // it may have been gone before the grant was seen
				at = since
			}
			o.noteLocked("a lock delay follows on %v", h)
			h.lk.deaths = append(h.lk.deaths, death{h, at})
		}
	}()
}

// releases is told that a program is about to release. What happens to the node from
// now on is no death, unless it was revoked before.
func (o *oracle) releases(h *hold) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if isOpen(h.g.Done()) {
		h.first().users--
	}
}

// checkDelay sees that nobody comes in before a lock delay is over. Whoever waits it
// out has the server's time from stats, in whole milliseconds.
func (o *oracle) checkDelay(h *hold) {
	if h.ask.under != nil {
		return
	}
	for _, d := range h.lk.deaths {
		left := d.at.Add(h.lk.wishes(d.h.c) - time.Millisecond).Sub(h.began)
		if left > 0 && d.h.epoch == h.epoch && d.h.stamp() == h.stamp() && d.h.g.Token() < h.g.Token() {
			o.failLocked("delay", "%v comes %v after the death of %v, who asked for a delay of %v",
				h, h.began.Sub(d.at), d.h, h.lk.wishes(d.h.c))
		}
	}
}

// stamp is what the names in one directory have in common, and in no other.
func (h *hold) stamp() string {
	s, _, _ := strings.Cut(path.Base(h.node), "-")
	return s
}
