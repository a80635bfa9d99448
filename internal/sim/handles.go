package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/barrier"
	"github.com/lockkeeper/lockkeeper/recipes/election"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/group"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
)

// handles are the values through which one process uses one lock.
type handles struct {
	p  *process
	lk *lock

	mutex    *mutex.Mutex
	rw       *rwlock.RWLock
	sem      *semaphore.Semaphore
	election *election.Election
	fair     map[string]*fair.Lock // by flow
	double   *barrier.Double
	group    *group.Group
	seen     []string // of the group; under the oracle's mutex
}

func newHandles(p *process, lk *lock, o *oracle) *handles {
	h := &handles{p: p, lk: lk, fair: make(map[string]*fair.Lock)}
	opts := []recipes.Option{recipes.OnRevoke(o.revoked(p.c.n)), recipes.Owner(fmt.Sprint("client ", p.c.n))}
	if d := lk.wishes(p.c); d > 0 {
		opts = append(opts, recipes.LockDelay(d))
	}
	if lk.nests {
		opts = append(opts, recipes.Reentrant())
	}
	var err error
	switch lk.kind {
	case "mutex":
		h.mutex, err = mutex.New(p.Session, lk.path, opts...)
	case "rwlock":
		h.rw, err = rwlock.New(p.Session, lk.path, opts...)
	case "semaphore":
		h.sem, err = semaphore.New(p.Session, lk.path, lk.size, opts...)
	case "election":
		h.election, err = election.New(p.Session, lk.path, opts...)
	case "double":
		h.double, err = barrier.NewDouble(p.Session, lk.path, lk.party, opts...)
	case "group":
		if h.group, err = group.New(p.Session, lk.path, opts...); err == nil {
			go h.follow()
		}
	case "fair":
		h.fair[""], err = fair.New(p.Session, lk.path, opts...)
	case "flows", "shares":
		if lk.kind == "shares" {
			opts = append(opts, fair.ByHoldTime())
		}
		for _, flow := range lk.flowNames() {
			if h.fair[flow], err = fair.New(p.Session, lk.path, append(opts, fair.Flow(flow, lk.weights[flow]))...); err != nil {
				break
			}
		}
	}
	if err != nil {
		panic(err)
	}
	return h
}

// An ask is what one attempt asks for.
type ask struct {
	mode    string // "lock", "read", "write"
	permits int
	flow    string
	try     bool
	ticket  bool
	under   *hold          // the grant in whose context it is asked: of a reader let in under a writer, or nested
	place   *place         // of a ticket
	term    *election.Term // of an election
	pass    *barrier.Pass  // of a double barrier
}

// draw chooses what to ask for.
func (lk *lock) draw(dice *rand.Rand) ask {
	a := ask{mode: "lock", try: dice.IntN(6) == 0}
	switch lk.kind {
	case "rwlock":
		if a.mode = "read"; dice.IntN(3) == 0 {
			a.mode = "write"
		}
	case "double", "group":
		a.mode, a.try = "member", false
	case "semaphore":
		a.permits = 1 + dice.IntN(lk.size)
	case "fair", "flows", "shares":
		if names := lk.flowNames(); len(names) > 0 {
			a.flow = names[dice.IntN(len(names))]
		}
		a.ticket = !a.try && dice.IntN(2) == 0
	}
	return a
}

// acquire asks for it.
func (h *handles) acquire(ctx context.Context, a *ask, dice *rand.Rand) (*recipes.Grant, error) {
	choose := func(lock, try func(context.Context) (*recipes.Grant, error)) (*recipes.Grant, error) {
		if a.try {
			return try(ctx)
		}
		return lock(ctx)
	}
	switch h.lk.kind {
	case "mutex":
		return choose(h.mutex.Lock, h.mutex.TryLock)
	case "rwlock":
		if a.mode == "read" {
			return choose(h.rw.RLock, h.rw.TryRLock)
		}
		return choose(h.rw.Lock, h.rw.TryLock)
	case "semaphore":
		return choose(
			func(ctx context.Context) (*recipes.Grant, error) { return h.sem.AcquireN(ctx, a.permits) },
			func(ctx context.Context) (*recipes.Grant, error) { return h.sem.TryAcquireN(ctx, a.permits) })
	case "election":
		campaign := h.election.Campaign
		if a.try {
			campaign = h.election.TryCampaign
		}
		term, err := campaign(ctx, []byte("me"))
		if err != nil {
			return nil, err
		}
		a.term = term
		return term.Grant, nil
	case "double":
		pass, err := h.double.Enter(ctx)
		if err != nil {
			return nil, err
		}
		a.pass = pass
		return pass.Grant, nil
	case "group":
		m, err := h.group.Join(ctx, []byte("me"))
		if err != nil {
			return nil, err
		}
		return m.Grant, nil
	}
	l := h.fair[a.flow]
	if a.ticket {
		return h.takeTicket(ctx, l, a, dice)
	}
	return choose(l.Lock, l.TryLock)
}

// takeTicket joins the queue, and waits once or several times.
func (h *handles) takeTicket(ctx context.Context, l *fair.Lock, a *ask, dice *rand.Rand) (*recipes.Grant, error) {
	o := h.p.c.w.o
	p := &place{lk: h.lk, c: h.p.c, flow: a.flow, asked: time.Now()}
	t, err := l.Join(ctx)
	if err != nil {
		return nil, err
	}
	p.joined = time.Now()
	o.joins(p)
	for {
		wait, cancel := ctx, context.CancelFunc(func() {})
		if dice.IntN(3) == 0 {
			wait, cancel = context.WithTimeout(ctx, seldom(dice, time.Second))
		}
		g, err := t.Wait(wait)
		again := err != nil && wait.Err() != nil && ctx.Err() == nil
		cancel()
		if again {
			continue
		}
		if err != nil {
			o.leaves(p)
			t.Leave(ctx)
			return nil, err
		}
		a.place = p // the oracle hears of the rest with the grant
		return g, nil
	}
}
