package sim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// An ambush is laid for one request of one session: just before it is carried out,
// something is done. What the library knows from before and from the answer is then as
// different as it can be.
type ambush struct {
	session int64
	wanted  func(zktest.Request) bool
	passes  int // how many of those pass
	springs int // how many after them spring it
	spring  func()
}

// lay lays it.
func (w *world) lay(a *ambush) {
	w.ambushMu.Lock()
	defer w.ambushMu.Unlock()
	w.ambushes = append(w.ambushes, a)
}

// meets springs the ambushes that a request walks into.
func (w *world) meets(r zktest.Request) {
	if w.over() {
		return
	}
	w.ambushMu.Lock()
	var now []*ambush
	w.ambushes = slices.DeleteFunc(w.ambushes, func(a *ambush) bool {
		if a.session != r.Session || !a.wanted(r) {
			return false
		}
		if a.passes--; a.passes < 0 {
			now = append(now, a)
			a.springs--
		}
		return a.springs == 0
	})
	w.ambushMu.Unlock()
	for _, a := range now {
		a.spring()
	}
}

var ambushed = []zktest.Op{
	zktest.OpGetData, zktest.OpGetData, zktest.OpGetData, zktest.OpGetData, zktest.OpGetData, zktest.OpGetData,
	zktest.OpExists, zktest.OpGetChildren2, zktest.OpCreate2, zktest.OpMulti, zktest.OpDelete,
}

// ambush removes contenders just when a request of the client's comes. Often its
// connection is lost soon after that, or soon after it has queued once more.
func (a *adversary) ambush(c *client) {
	lk, p := a.lock(), c.now()
	op, below := ambushed[a.dice.IntN(len(ambushed))], a.dice.IntN(3) == 0
	whom, seed := a.dice.IntN(7), a.dice.IntN(1000)
	impatient := a.dice.IntN(2) == 0
	cut := func() {
		if !a.w.over() {
			a.w.o.note("cut: client %d", c.n)
			p.link.cut()
		}
	}
	then, wait := a.dice.IntN(4), seldom(a.dice, 150*time.Millisecond)
	soon := func() { time.AfterFunc(wait, cut) }
	more := ambush{session: p.ID(), passes: a.dice.IntN(2), springs: 1, spring: soon,
		wanted: func(r zktest.Request) bool { return r.Op == zktest.OpCreate2 }}
	a.w.lay(&ambush{session: p.ID(), passes: a.dice.IntN(4), springs: 1 + a.dice.IntN(3),
		wanted: func(r zktest.Request) bool {
			return r.Op == op && (r.Path == "" || r.Path == lk.path && !below || strings.HasPrefix(r.Path, lk.path+"/") && below)
		},
		spring: func() {
			a.w.removeSome(lk, p, whom, seed)
			if impatient {
				a.cancelAll(c)
			}
			switch then {
			case 1:
				soon()
			case 2, 3:
				m := more
				a.w.lay(&m)
			}
		}})
}

// removeSome removes one contender of the process, or all of them, or all contenders
// but one, which mostly is the first.
func (w *world) removeSome(lk *lock, p *process, whom, seed int) {
	names := slices.DeleteFunc(w.srv.Children(lk.path), func(name string) bool { return name == delayed })
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Compare(a[strings.LastIndexByte(a, '-')+1:], b[strings.LastIndexByte(b, '-')+1:])
	})
	if whom < 2 {
		names = slices.DeleteFunc(names, func(name string) bool {
			stat, there := w.srv.Stat(lk.path + "/" + name)
			return !there || stat.EphemeralOwner != p.ID()
		})
	}
	if len(names) == 0 {
		return
	}
	n := seed % len(names)
	switch whom {
	case 0:
		names = names[n : n+1]
	case 1:
	case 2:
		names = slices.Delete(names, n, n+1)
	default:
		names = names[1:]
	}
	w.o.note("removed at a request of client %d: %q", p.c.n, names)
	for _, name := range names {
		w.o.remove(lk.path + "/" + name)
	}
}
