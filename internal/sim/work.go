package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/guard"
	"github.com/lockkeeper/lockkeeper/session"
)

// A worker takes one lock again and again, and does with it what programs do.
type worker struct {
	w    *world
	c    *client
	lk   *lock
	dice *rand.Rand

	pace time.Duration

	// Under the oracle's mutex.
	waits  string             // what it waits for without an end
	cancel context.CancelFunc // of the attempt that it makes now
}

// work starts the client's program: one or two workers for each lock, and sometimes
// a crowd, which asks no more often together than others do.
func (c *client) work() {
	for i, lk := range c.w.locks {
		n, pace := 1+c.dice.IntN(2), c.w.pace
		if c.dice.IntN(3) == 0 {
			n, pace = n+3, 3*pace
		}
		for j := range n {
			k := &worker{w: c.w, c: c, lk: lk, dice: dice(c.w.Seed, uint64(1000+100*c.n+10*i+j)), pace: pace}
			c.w.all = append(c.w.all, k)
			c.w.spawn(k.run)
		}
	}
}

func (k *worker) run() {
	for !k.w.over() {
		pace := k.pace
		if k.c.hurries() {
			pace = 10 * time.Millisecond
		}
		k.w.pause(seldom(k.dice, pace))
		k.c.thaw()
		if k.w.over() {
			return
		}
		k.attempt()
	}
}

// attempt asks for the lock once, and holds it if it gets it.
func (k *worker) attempt() {
	some := k.c.now().locks[k.lk]
	via := some[k.dice.IntN(len(some))]
	a := k.lk.draw(k.dice)
	ctx, cancel := context.WithCancel(k.w.ctx)
	defer cancel()
	patient := a.try
	mean := 1500 * time.Millisecond
	hasty := k.c.hurries()
	if hasty {
		mean = 10 * time.Millisecond
	}
	if k.lk.party > 0 { // a round may never be full
		mean = 5 * time.Second
	}
	if hasty || k.lk.party > 0 || k.dice.IntN(4) == 0 {
		ctx, cancel = context.WithTimeout(ctx, seldom(k.dice, mean))
		defer cancel()
		patient = true
	}
	waits := ""
	if !patient {
		waits = fmt.Sprintf("client %d waits for %s %s since %v", k.c.n, a.mode, k.lk.path, time.Since(k.w.began))
	}
	k.waiting(waits, cancel)
	g, err := via.acquire(ctx, &a, k.dice)
	k.waiting("", nil)
	if ctx.Err() != nil && g != nil {
		k.w.o.fail("context", "client %d: granted, although the context has ended", k.c.n)
	}
	if (g == nil) == (err == nil) {
		k.w.o.fail("result", "client %d: grant %v with error %v", k.c.n, g, err)
		return
	}
	if err != nil {
		k.refused(err, ctx.Err() != nil)
		return
	}
	k.hold(via, g, a)
}

// refused sees that an attempt failed for a reason.
func (k *worker) refused(err error, ended bool) {
	switch {
	case ended && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
	case errors.Is(err, recipes.ErrBusy):
	case errors.Is(err, recipes.ErrSessionClosed), errors.Is(err, recipes.ErrSessionLost), errors.Is(err, recipes.ErrNodeDeleted):
		// the first of a process that ended, the others of tickets and tries
	case errors.Is(err, recipes.ErrSuspended) && k.c.strict:
	default:
		k.w.o.fail("error", "client %d, %s: %v", k.c.n, k.lk.path, err)
	}
}

func (k *worker) waiting(what string, cancel context.CancelFunc) {
	k.w.o.mu.Lock()
	defer k.w.o.mu.Unlock()
	k.waits, k.cancel = what, cancel
}

// held is what the holds of our recipes on ZooKeeper can tell.
type held interface {
	Life() *session.Life
	Node() string
}

func (k *worker) newHold(via *handles, g *recipes.Grant, a ask) *hold {
	h := &hold{g: g, lk: k.lk, c: k.c, via: via, ask: a, slots: g.Slots()}
	stands := recipes.HoldOf(g).(held)
	h.life, h.node = stands.Life(), stands.Node()
	return h
}

// hold uses the lock, and releases it.
func (k *worker) hold(via *handles, g *recipes.Grant, a ask) {
	h := k.newHold(via, g, a)
	if !k.w.o.begin(h) {
		k.release(h)
		return
	}
	var checks []any
	if !k.lk.meets() {
		checks = k.checks(g)
	}
	if a.mode == "write" && k.dice.IntN(3) == 0 {
		k.readOn(h)
	}
	if k.dice.IntN(4) == 0 && k.lk.kind != "group" {
		k.again(h)
	}
	if k.dice.IntN(2) == 0 && !k.lk.meets() {
		k.write(h)
	}
	d := seldom(k.dice, 300*time.Millisecond)
	if k.dice.IntN(8) == 0 { // so long that its session may be lost
		d = seldom(k.dice, k.c.timeout)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-g.Done():
	case <-k.w.stop:
	}
	k.c.thaw()
	if k.dice.IntN(3) == 0 || !isOpen(g.Done()) {
		k.writeLate(h, checks)
	}
	if k.dice.IntN(10) == 0 {
		ctx, cancel := context.WithTimeout(k.w.ctx, 10*time.Second)
		g.Verify(ctx)
		cancel()
	}
	k.release(h)
	if k.dice.IntN(4) == 0 {
		k.c.thaw()
		k.writeLate(h, checks) // which is over
	}
}

// checks returns what a program has that is stopped between the check and the write;
// nothing if they could not be had.
func (k *worker) checks(g *recipes.Grant) []any {
	ctx, cancel := context.WithTimeout(k.w.ctx, 10*time.Second)
	defer cancel()
	checks, _ := guard.Checks(ctx, g)
	return checks
}

// release gives the lock up; it waits for the confirmation, or not.
func (k *worker) release(h *hold) {
	ctx, cancel := context.WithCancel(k.w.ctx)
	defer cancel()
	if k.dice.IntN(2) == 0 {
		ctx, cancel = context.WithTimeout(ctx, seldom(k.dice, 200*time.Millisecond))
		defer cancel()
	}
	release := h.g.Release
	if h.ask.term != nil && k.dice.IntN(4) == 0 {
		release = func(ctx context.Context) error { return k.resignTo(ctx, h) }
	}
	if h.ask.pass != nil && k.dice.IntN(2) == 0 {
		release = func(ctx context.Context) error { return k.leave(ctx, h) }
	}
	k.w.o.releases(h)
	err := release(ctx)
	if err != nil && !errors.Is(err, recipes.ErrRevoked) && ctx.Err() == nil {
		k.w.o.fail("release", "%v: %v", h, err)
	}
}

// resignTo names one of those in line as the next leader.
func (k *worker) resignTo(ctx context.Context, h *hold) error {
	waiting, err := h.via.election.Contenders(ctx)
	if err != nil || len(waiting) == 0 {
		return h.g.Release(ctx)
	}
	return h.ask.term.ResignTo(ctx, waiting[k.dice.IntN(len(waiting))].ID)
}

// readOn lets a reader in under a write grant, which lasts for longer than that or
// not.
func (k *worker) readOn(w *hold) {
	d := seldom(k.dice, 300*time.Millisecond)
	k.w.spawn(func() {
		ctx := w.g.Context(k.w.ctx)
		g, err := w.via.rw.RLock(ctx)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, recipes.ErrSessionClosed) {
				k.w.o.fail("error", "reader under %v: %v", w, err)
			}
			return
		}
		h := k.newHold(w.via, g, ask{mode: "read", under: w})
		if k.w.o.begin(h) {
			select {
			case <-time.After(d):
			case <-g.Done():
			}
		}
		g.Release(k.w.ctx)
	})
}

// again asks for what it holds already. Where that is nested, one of the two grants
// lasts for longer than the other.
func (k *worker) again(h *hold) {
	a := ask{mode: h.ask.mode, flow: h.ask.flow, permits: h.ask.permits, under: h}
	ctx := h.g.Context(k.w.ctx)
	d := seldom(k.dice, 300*time.Millisecond)
	g, err := h.via.acquire(ctx, &a, k.dice)
	switch {
	case err != nil && ctx.Err() != nil:
	case !k.lk.nests && errors.Is(err, recipes.ErrDeadlock):
	case err != nil || !k.lk.nests:
		k.w.o.fail("error", "again under %v: %v, %v", h, g, err)
	case g.Token() != h.g.Token() || !slices.Equal(g.Slots(), h.slots):
		k.w.o.fail("tokens", "%v in %v under %v", g.Token(), g.Slots(), h)
	default:
		k.w.spawn(func() {
			n := k.newHold(h.via, g, a)
			if k.w.o.begin(n) {
				select {
				case <-time.After(d):
				case <-g.Done():
				}
			}
			k.w.o.releases(n)
			g.Release(k.w.ctx)
		})
	}
}

// write writes under the lock, into the ensemble itself.
func (k *worker) write(h *hold) {
	ctx, cancel := context.WithTimeout(k.w.ctx, 10*time.Second)
	defer cancel()
	res, err := guard.Multi(ctx, h.g, &zk.SetDataRequest{Path: guarded(k.lk), Data: []byte(h.g.Token().String()), Version: -1})
	if err == nil {
		k.w.o.wrote(h, res[0].Stat.Mzxid, false)
	}
}

// writeLate writes as a program does that has looked before it was stopped, and
// writes after it: on whatever session there is, with the checks that it had.
func (k *worker) writeLate(h *hold, checks []any) {
	ctx, cancel := context.WithTimeout(k.w.ctx, 10*time.Second)
	defer cancel()
	if checks == nil {
		return
	}
	life, err := k.c.now().Life(ctx)
	if err != nil {
		return
	}
	res, err := life.Multi(ctx, append(append([]any(nil), checks...),
		&zk.SetDataRequest{Path: guarded(k.lk), Data: []byte(h.g.Token().String()), Version: -1})...)
	if err == nil {
		k.w.o.wrote(h, res[len(checks)].Stat.Mzxid, true)
	}
}

// guarded is the node that is written under a lock.
func guarded(lk *lock) string { return "/guarded/" + lk.kind }

// wrote is told of a write that was carried out.
func (o *oracle) wrote(h *hold, zxid int64, late bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h.ask.mode != "read" && h.lk.size == 0 && h.epoch == o.epoch {
		o.noteLocked("client %d wrote under %v, in %v (late: %v)", h.c.n, h.g.Token(), zxid, late)
		o.writes = append(o.writes, write{h.lk, h.epoch, zxid, h.g.Token(), late})
	}
}
