package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// An adversary does what can go wrong, one thing after the other and several at a
// time. What no client can foresee, it tells the oracle.
type adversary struct {
	w    *world
	dice *rand.Rand
	gap  time.Duration
	wipe bool
}

// trouble lasts for the length of the run.
func (w *world) trouble() {
	a := &adversary{w: w, dice: dice(w.Seed, 1)}
	a.gap = []time.Duration{3 * time.Second, 6 * time.Second, 12 * time.Second}[a.dice.IntN(3)]
	if w.Busy {
		a.gap = 2 * time.Second
	}
	a.wipe = a.dice.IntN(8) == 0
	end := time.Now().Add(w.Length)
	for time.Now().Before(end) && !w.over() {
		if w.pause(seldom(a.dice, a.gap)); !w.over() {
			a.act()
			w.faults++
		}
	}
}

// A harm is one thing that can go wrong, for one client or for all.
type harm struct {
	weight int
	name   string
	do     func(a *adversary, c *client, d time.Duration)
}

var harms = []harm{
	{6, "cut", func(a *adversary, c *client, d time.Duration) { c.now().link.cut() }},
	{3, "hold one way", func(a *adversary, c *client, d time.Duration) { c.now().link.hold(a.way(), a.until(d)) }},
	{2, "hold both ways", func(a *adversary, c *client, d time.Duration) { a.hold(c, d) }},
	{3, "lose one way", func(a *adversary, c *client, d time.Duration) { c.now().link.lose(a.way(), a.until(d)) }},
	{2, "lose both ways", func(a *adversary, c *client, d time.Duration) {
		c.now().link.lose(up, a.until(d))
		c.now().link.lose(down, a.until(d))
	}},
	{7, "hold answers, lose requests", func(a *adversary, c *client, d time.Duration) {
		c.now().link.hold(down, a.until(d/4))
		a.w.after(d/8, func() { c.now().link.lose(up, a.until(c.timeout+d/8)) })
	}},
	{2, "refuse", func(a *adversary, c *client, d time.Duration) {
		c.now().link.refuse(a.until(d))
		c.now().link.cut()
	}},
	{2, "slow", func(a *adversary, c *client, d time.Duration) {
		c.now().link.slow(time.Duration(1+a.dice.IntN(400))*time.Millisecond, a.until(d))
		a.w.after(d, func() { c.now().link.slow(usualLatency, time.Now()) })
	}},
	{3, "freeze", func(a *adversary, c *client, d time.Duration) { c.freeze(a.until(d)) }},
	{4, "lose a reply", func(a *adversary, c *client, d time.Duration) { a.w.srv.LoseReply(a.op(), 1+a.dice.IntN(4)) }},
	{3, "lose a request", func(a *adversary, c *client, d time.Duration) { a.w.srv.LoseRequest(a.op(), 1+a.dice.IntN(4)) }},
	{2, "fail an operation", func(a *adversary, c *client, d time.Duration) { a.failOne() }},
	{4, "cut-off follower", func(a *adversary, c *client, d time.Duration) {
		p := c.now()
		p.link.trouble(a.until(d))
		a.w.srv.CutOffFollower(p.ID())
		a.w.after(d, p.link.cut) // it gives up
	}},
	{3, "stale reads", func(a *adversary, c *client, d time.Duration) {
		id := c.now().ID()
		c.now().link.trouble(a.until(d))
		a.w.srv.StaleReads(id, true)
		a.w.after(d, func() { a.w.srv.StaleReads(id, false) })
	}},
	{2, "expire", func(a *adversary, c *client, d time.Duration) { a.w.o.expire(c.now().ID()) }},
	{4, "delete a contender", func(a *adversary, c *client, d time.Duration) { a.deleteOne() }},
	{10, "lay an ambush", func(a *adversary, c *client, d time.Duration) { a.ambush(c) }},
	{2, "haste", func(a *adversary, c *client, d time.Duration) { c.hurry(a.until(d / 16)) }},
	{2, "cancel all", func(a *adversary, c *client, d time.Duration) { a.cancelAll(c) }},
	{1, "delete a directory", func(a *adversary, c *client, d time.Duration) { a.deleteAll() }},
	{1, "resume with another", func(a *adversary, c *client, d time.Duration) {
		a.w.srv.AnswerResumeWith([]int64{0, 4711}[a.dice.IntN(2)]) // none, or one that nobody had
		c.now().link.cut()
	}},
	{1, "restart the server", func(a *adversary, c *client, d time.Duration) {
		for _, c := range a.w.clients {
			c.now().link.refuse(a.until(d / 2))
			c.now().link.cut()
		}
	}},
	{1, "wipe the server", func(a *adversary, c *client, d time.Duration) {
		if a.wipe && a.dice.IntN(4) == 0 {
			a.w.o.wipe(a.w)
		}
	}},
	{1, "restart a client", func(a *adversary, c *client, d time.Duration) {
		crash := a.dice.IntN(2) == 0
		a.w.spawn(func() { c.restart(crash) })
	}},
}

// act does one of them.
func (a *adversary) act() {
	sum := 0
	for _, h := range harms {
		sum += h.weight
	}
	n := a.dice.IntN(sum)
	for _, h := range harms {
		if n -= h.weight; n < 0 {
			c := a.w.clients[a.dice.IntN(len(a.w.clients))]
			d := time.Duration(a.dice.Float64() * 1.5 * float64(c.timeout))
			if a.dice.IntN(8) == 0 {
				d *= 2
			}
			a.w.o.note("%s: client %d, %v", h.name, c.n, d.Round(time.Millisecond))
			h.do(a, c, d)
			return
		}
	}
}

func (a *adversary) way() direction                  { return direction(a.dice.IntN(2)) }
func (a *adversary) until(d time.Duration) time.Time { return time.Now().Add(d) }

func (a *adversary) hold(c *client, d time.Duration) {
	c.now().link.hold(up, a.until(d))
	c.now().link.hold(down, a.until(d))
}

var ops = []zktest.Op{
	zktest.OpCreate2, zktest.OpCreate2, zktest.OpMulti, zktest.OpMulti, zktest.OpDelete, zktest.OpDelete,
	zktest.OpGetData, zktest.OpExists, zktest.OpGetChildren2, zktest.OpSync, zktest.OpCreateContainer,
}

func (a *adversary) op() zktest.Op { return ops[a.dice.IntN(len(ops))] }

// failOne has an operation refused with an error that says little.
func (a *adversary) failOne() {
	codes := []int32{-4, -7, -118, -127} // connection loss, operation timeout, session moved, throttled
	a.w.srv.FailRequest(a.op(), 1+a.dice.IntN(4), codes[a.dice.IntN(len(codes))])
}

func (a *adversary) lock() *lock { return a.w.locks[a.dice.IntN(len(a.w.locks))] }

// cancelAll has all who wait in one process give up at the same moment.
func (a *adversary) cancelAll(c *client) {
	a.w.o.mu.Lock()
	defer a.w.o.mu.Unlock()
	for _, k := range a.w.all {
		if k.c == c && k.cancel != nil {
			k.cancel()
		}
	}
}

// deleteOne removes a contender, who may hold.
func (a *adversary) deleteOne() {
	lk := a.lock()
	dir := lk.path
	if lk.weights != nil && a.dice.IntN(3) == 0 {
		names := lk.flowNames()
		dir = fmt.Sprintf("%s.flows/%s/%s", lk.path, names[a.dice.IntN(len(names))], []string{"queue", "line"}[a.dice.IntN(2)])
		a.w.o.meddle(lk)
	}
	if names := a.w.srv.Children(dir); len(names) > 0 {
		a.w.o.remove(dir + "/" + names[a.dice.IntN(len(names))])
	}
}

// deleteAll removes a lock with all who are in line.
func (a *adversary) deleteAll() {
	lk := a.lock()
	dir := lk.path
	if lk.weights != nil && a.dice.IntN(2) == 0 {
		dir += ".flows"
		a.w.o.meddle(lk)
	}
	a.w.o.removeAll(dir)
}

// after does something later, unless the faults are over by then.
func (w *world) after(d time.Duration, f func()) {
	w.spawn(func() {
		if w.pause(d); !w.over() {
			f()
		}
	})
}
