package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// Options say what to simulate.
type Options struct {
	Seed   uint64
	Length time.Duration // virtual, of the time with faults; the calm after it comes on top
	// Only, if set, is the kind of lock that every client uses.
	Only string
	// Busy makes the clients and the adversary as busy as they ever are.
	Busy bool
}

// A Report is what came of one run.
type Report struct {
	Options
	Virtual    time.Duration
	Grants     int
	Faults     int
	Requests   int
	Violations []Violation
	log        []string
}

// A Violation is a promise that was broken: which check saw it, and when.
type Violation struct {
	Check, What string
	At          time.Duration
}

func (v Violation) String() string { return fmt.Sprintf("%v: %s: %s", v.At, v.Check, v.What) }

// String tells what was broken, how to run it again, and what had happened before.
func (r Report) String() string {
	var b strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintln(&b, v)
	}
	fmt.Fprintf(&b, "again: go test ./internal/sim -run 'TestSimulation$' -sim.seed=%d -sim.length=%v", r.Seed, r.Length)
	if r.Only != "" {
		fmt.Fprintf(&b, " -sim.only=%s", r.Only)
	}
	if r.Busy {
		b.WriteString(" -sim.busy")
	}
	b.WriteString(" -sim.seeds=20 -sim.repeat\nbefore that:\n  ")
	b.WriteString(strings.Join(r.log, "\n  "))
	return b.String()
}

// A world is one run.
type world struct {
	Options
	dice    *rand.Rand // of the plan
	srv     *zktest.Server
	o       *oracle
	locks   []*lock
	clients []*client
	pace    time.Duration // the mean time between a worker's attempts
	faults  int

	ambushMu sync.Mutex
	ambushes []*ambush

	all     []*worker
	stop    chan struct{}   // closed when the faults are over
	ctx     context.Context // of attempts without another; ends when they are given up
	giveUp  context.CancelFunc
	workers sync.WaitGroup
	pumps   sync.WaitGroup // of the connections
	began   time.Time
	report  Report
}

// Run makes one run. It does not fail t: what was seen is in the report.
func Run(t *testing.T, o Options) (r Report) {
	w := &world{Options: o, dice: dice(o.Seed, 0)}
	defer func() {
		if p := recover(); p != nil { // the bubble's: there are goroutines that nothing will ever wake
			w.o.stuck(p)
		}
		r = w.finish()
	}()
	synctest.Test(t, func(*testing.T) { w.run() })
	return
}

// dice returns the random numbers of one actor. What an actor does depends on its
// own dice alone, so that it does the same again, whoever else is about.
func dice(seed, actor uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, actor)) }

func (w *world) finish() Report {
	r := w.report
	r.Options = w.Options
	w.o.mu.Lock()
	defer w.o.mu.Unlock()
	r.Violations, r.Grants, r.Faults = w.o.violations, w.o.grants, w.faults
	if len(r.Violations) > 0 {
		for _, e := range w.o.log {
			r.log = append(r.log, fmt.Sprintf("%12v ", e.at.Round(time.Microsecond))+fmt.Sprintf(e.format, e.args...))
		}
	}
	return r
}

// run is the whole of it: trouble, calm, and the reckoning.
func (w *world) run() {
	w.began = time.Now()
	srv, err := zktest.New(zktest.InMemory(), zktest.ReapInterval(300*time.Millisecond))
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	w.srv, w.o, w.stop = srv, newOracle(srv), make(chan struct{})
	w.ctx, w.giveUp = context.WithCancel(context.Background())
	defer w.giveUp()
	srv.OnRequest(func(r zktest.Request) {
		w.o.check()
		w.meets(r)
	})
	w.plan()
	w.makeGuarded()
	for _, c := range w.clients {
		c.open()
	}
	for _, c := range w.clients {
		c.work()
	}
	w.trouble()
	w.calm()
	w.pumps.Wait() // what was sent last is on its way
	w.report.Virtual = time.Since(w.began)
	w.report.Requests = srv.Requests().Total()
}

// spawn runs f on a goroutine that is waited for, and makes a violation of a panic.
func (w *world) spawn(f func()) {
	w.workers.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				w.o.fail("panic", "%v\n%s", p, debug.Stack())
			}
		}()
		f()
	})
}

// over reports whether the faults are over, or there is nothing more to learn.
func (w *world) over() bool { return !isOpen(w.stop) || !isOpen(w.o.broken) }

// pause sleeps, but not beyond the end of the faults.
func (w *world) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.stop:
	case <-w.o.broken:
	}
}
