package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// A client is one machine with a clock of its own. The process on it may be started
// again: then it has another session.
type client struct {
	w       *world
	n       int
	dice    *rand.Rand
	rate    float64
	timeout time.Duration
	strict  bool
	handles int // that a process of it has for one lock

	restarts chan struct{} // holds a token while one is under way

	mu      sync.Mutex
	present *process
	frozen  time.Time // until then the program does not run
	hasty   time.Time // until then it asks all the time, and gives up soon
}

// A process is one session with its locks.
type process struct {
	*session.Session
	c     *client
	link  *link
	locks map[*lock][]*handles

	closing bool // it says goodbye; under the oracle's mutex
}

func newClient(w *world, n int) *client {
	c := &client{w: w, n: n, dice: dice(w.Seed, uint64(10+n)), restarts: make(chan struct{}, 1)}
	// Clocks differ by up to 4 parts in 100 from the server's; the trust window
	// allows for 5.
	c.rate = 1 + 0.04*(2*c.dice.Float64()-1)
	c.timeout = []time.Duration{4 * time.Second, 6 * time.Second, 10 * time.Second}[c.dice.IntN(3)]
	c.strict = c.dice.IntN(6) == 0
	c.handles = 1 + c.dice.IntN(2)
	return c
}

// told is the session timeout that the client knows of, as the server counts.
func (c *client) told() time.Duration { return c.timeout * 105 / 100 }

// calmSince reports whether nothing was wrong for the client since t.
func (c *client) calmSince(t time.Time) bool { return c.now().link.calmSince(t) }

func (c *client) now() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.present
}

// open starts the process, once more if there was one. It goes on until the
// session stands.
func (c *client) open() {
	c.mu.Lock()
	seed := c.dice.Uint64()
	c.mu.Unlock()
	l := newLink(c.w, rand.New(rand.NewPCG(c.w.Seed, seed)), c.rate, c.timeout)
	cfg := session.Config{Servers: []string{c.w.srv.Addr()}, Dial: l.Dial, Timeout: c.timeout, RevokeOnSuspend: c.strict}
	for c.w.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(c.w.ctx, time.Minute)
		s, err := session.Open(ctx, cfg)
		cancel()
		if err != nil {
			continue
		}
		p := &process{Session: s, c: c, link: l, locks: make(map[*lock][]*handles)}
		for _, lk := range c.w.locks {
			for range c.handles {
				p.locks[lk] = append(p.locks[lk], newHandles(p, lk, c.w.o))
			}
		}
		c.mu.Lock()
		c.present = p
		c.mu.Unlock()
		return
	}
}

// restart ends the process and starts another. One that crashes does not say
// goodbye.
func (c *client) restart(crash bool) {
	c.restarts <- struct{}{}
	defer func() { <-c.restarts }()
	old := c.now()
	c.open()
	if c.now() == old {
		return // it was too late for that
	}
	if crash {
		old.link.refuse(time.Now().Add(time.Hour))
		old.link.cut()
	}
	old.close(crash)
}

// close ends the process. If it crashes, nothing of that reaches the server.
func (p *process) close(crash bool) {
	p.c.w.o.excuse(func() { p.closing = !crash })
	began := time.Now()
	p.Close()
	if took := time.Since(began); took > 5*time.Second {
		p.c.w.o.fail("close", "client %d: Close took %v", p.c.n, took)
	}
}

// freeze stops the program: what it would do next, it does later.
func (c *client) freeze(until time.Time) {
	c.mu.Lock()
	c.frozen = later(c.frozen, until)
	c.mu.Unlock()
	l := c.now().link
	l.hold(up, until)
	l.hold(down, until)
}

// hurry has the program ask all the time, and give up soon.
func (c *client) hurry(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hasty = later(c.hasty, until)
}

func (c *client) hurries() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.hasty)
}

// thaw waits while the program is frozen.
func (c *client) thaw() {
	for {
		c.mu.Lock()
		until := c.frozen
		c.mu.Unlock()
		if !time.Now().Before(until) {
			return
		}
		sleepUntil(until, nil)
	}
}

// revoked returns the callback of a client's locks.
func (o *oracle) revoked(client int) func(recipes.Revocation) {
	return func(r recipes.Revocation) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.fate(client, r.Path, r.Token).told++
	}
}
