package sim

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// An oracle is told of every grant as soon as a program has it, and of everything
// that the adversary does which no client can foresee. It looks at Done only, for
// that is what a program relies on that does not ask: while it is open, the program
// may believe that it holds.
type oracle struct {
	srv   *zktest.Server
	start time.Time

	mu         sync.Mutex
	broken     chan struct{} // closed at the first violation
	violations []Violation
	log        []entry
	grants     int
	live       []*hold
	seen       map[key]*fate
	epoch      int // of the server's data; a wipe begins a new one
	expired    map[int64]time.Time
	removed    map[string]time.Time // nodes, and directories with their stamp
	tickets    []*place
	writes     []write
	rounds     []*lock // double barriers
}

// A hold is a grant that a program has.
type hold struct {
	g      *recipes.Grant
	lk     *lock
	c      *client
	via    *handles
	ask    ask
	slots  []int
	life   *session.Life
	node   string
	began  time.Time
	queued time.Time // when its node was made
	epoch  int
	broken bool // a violation was reported
	users  int  // of the first grant of a node: how many there are that were not released
}

type key struct {
	client int
	path   string
	token  recipes.Token
}

// A fate is what became of the grants of one token.
type fate struct {
	grants, told int
	holds        []*hold
}

type write struct {
	lk    *lock
	epoch int
	zxid  int64
	token recipes.Token
	late  bool
}

type entry struct {
	at     time.Duration
	format string
	args   []any
}

func newOracle(srv *zktest.Server) *oracle {
	return &oracle{
		srv: srv, start: time.Now(), broken: make(chan struct{}),
		seen: make(map[key]*fate), expired: make(map[int64]time.Time), removed: make(map[string]time.Time),
	}
}

// note writes into the log of what happened.
func (o *oracle) note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.noteLocked(format, args...)
}

func (o *oracle) noteLocked(format string, args ...any) {
	if len(o.log) == 2*logged {
		o.log = slices.Delete(o.log, 0, logged)
	}
	o.log = append(o.log, entry{time.Since(o.start), format, args})
}

const logged = 150

// fail reports a violation.
func (o *oracle) fail(check, format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failLocked(check, format, args...)
}

// stuck reports what is left when the bubble is over: nothing of it can be touched any
// more, its channels least of all.
func (o *oracle) stuck(why any) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	o.mu.Lock()
	defer o.mu.Unlock()
	o.violations = append(o.violations, Violation{"goroutines", fmt.Sprintf("%v\n%s", why, stacks), 0})
}

func (o *oracle) failLocked(check, format string, args ...any) {
	if len(o.violations) == 0 {
		close(o.broken)
	}
	if len(o.violations) < 5 {
		o.violations = append(o.violations, Violation{check, fmt.Sprintf(format, args...), time.Since(o.start)})
		o.noteLocked("VIOLATION "+check+": "+format, args...)
	}
}

func isOpen(c <-chan struct{}) bool {
	select {
	case <-c:
		return false
	default:
		return true
	}
}

// begin is told of a grant. It reports whether the program may use it; it may not
// if the grant was lost on the way to it.
func (o *oracle) begin(h *hold) bool {
	stat, there := o.srv.Stat(h.node)
	o.mu.Lock()
	defer o.mu.Unlock()
	h.began, h.epoch = time.Now(), o.epoch
	o.grants++
	f := o.fate(h.c.n, h.lk.path, h.g.Token())
	f.grants++
	f.holds = append(f.holds, h)
	if h.ask.place != nil {
		o.leavesLocked(h.ask.place)
	}
	if !isOpen(h.g.Done()) {
		return false
	}
	o.noteLocked("client %d holds %v", h.c.n, h)
	since, excused := o.excused(h)
	switch {
	case !there || stat.EphemeralOwner != h.life.ID():
		if !excused {
			o.failLocked("node", "%v is granted, and its node is not there", h)
		} else if since.Before(h.began.Add(-time.Second)) && h.c.calmSince(since.Add(-h.c.told())) {
			o.failLocked("node", "%v is granted, %v after its node was removed", h, h.began.Sub(since))
		}
	default:
		h.queued = time.UnixMilli(stat.Ctime)
	}
	switch {
	case excused:
	case h.lk.meets():
		o.checkRound(h)
	default:
		o.checkOverlap(h)
		if !h.nested() {
			o.checkTokens(h)
			o.checkArrival(h)
			o.checkShares(h)
			o.checkDelay(h)
		}
	}
	o.watchDeath(h)
	o.live = append(o.live, h)
	h.first().users++
	return true
}

func (o *oracle) fate(client int, path string, token recipes.Token) *fate {
	k := key{client, path, token}
	f := o.seen[k]
	if f == nil {
		f = &fate{}
		o.seen[k] = f
	}
	return f
}

// checkOverlap sees that no other grant excludes this one.
func (o *oracle) checkOverlap(h *hold) {
	used := len(h.slots)
	counted := make(map[*hold]bool)
	for _, other := range o.live {
		if other.lk != h.lk || !isOpen(other.g.Done()) {
			continue
		}
		if _, excused := o.excused(other); excused {
			continue
		}
		if h.chain() == other.chain() { // nested, or readers let in under their own writer
			continue
		}
		if first := other.first(); !counted[first] {
			counted[first] = true
			used += len(other.slots)
		}
		switch {
		case h.lk.size > 0:
			if slices.ContainsFunc(h.slots, func(s int) bool { return slices.Contains(other.slots, s) }) {
				o.failLocked("overlap", "%v has a slot of %v", h, other)
			}
		case h.ask.mode == "read" && other.ask.mode == "read":
		default:
			o.failLocked("overlap", "%v while %v is held", h, other)
		}
	}
	if h.lk.size > 0 && used > h.lk.size {
		o.failLocked("overlap", "%v makes %d permits of %d", h, used, h.lk.size)
	}
}

// checkTokens sees that tokens rise, and so that those who kept their places are
// served in the order in which they came.
func (o *oracle) checkTokens(h *hold) {
	lk, t := h.lk, h.g.Token()
	if lk.size > 0 {
		for _, s := range h.slots {
			if t <= lk.bySlot[s] {
				o.failLocked("tokens", "%v of slot %d after %v", h, s, lk.bySlot[s])
			}
			lk.bySlot[s] = t
		}
		return
	}
	shared := h.ask.mode == "read"
	if !shared && t <= lk.highest || t < lk.exclusive || t == lk.exclusive && h.ask.under == nil {
		o.failLocked("tokens", "%v after %v", h, max(lk.highest, lk.exclusive))
	}
	lk.highest = max(lk.highest, t)
	if !shared {
		lk.exclusive = t
	}
}

// check looks at all grants that somebody may believe in: their nodes are there, or
// somebody has just taken them away. It is called for every request that the server
// gets.
func (o *oracle) check() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.checkFull()
	o.live = slices.DeleteFunc(o.live, func(h *hold) bool { return !isOpen(h.g.Done()) })
	for _, h := range o.live {
		if h.broken {
			continue
		}
		stat, there := o.srv.Stat(h.node)
		if there && stat.EphemeralOwner == h.life.ID() || !isOpen(h.g.Done()) {
			continue
		}
		since, excused := o.excused(h)
		switch {
		case !excused:
			h.broken = true
			o.failLocked("node", "%v is believed in, and its node is not there any more", h)
		case time.Now().After(later(since, h.began).Add(h.c.told() + time.Second)):
			h.broken = true
			o.failLocked("revocation", "%v is still believed in, %v after its node was removed", h, time.Since(since))
		}
	}
}

// nested reports whether it shares the node of another grant, and its turn.
func (h *hold) nested() bool { return h.ask.under != nil && h.ask.under.node == h.node }

// first is the grant that this one is nested in, or itself.
func (h *hold) first() *hold {
	for h.nested() {
		h = h.ask.under
	}
	return h
}

// chain is the first of all that hold together.
func (h *hold) chain() *hold {
	for h.ask.under != nil {
		h = h.ask.under
	}
	return h
}

func (h *hold) String() string {
	s := fmt.Sprintf("%s %s, token %v of client %d (%s)", h.ask.mode, h.lk.path, h.g.Token(), h.c.n, path.Base(h.node))
	if h.slots != nil {
		s += fmt.Sprint(", slots ", h.slots)
	}
	return s
}
