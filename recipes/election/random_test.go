package election_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/election"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// An oracle is told what the candidates do, and compares it with what the
// observers see.
type oracle struct {
	t       *testing.T
	mu      sync.Mutex
	last    *recipes.Grant
	terms   int
	values  map[string]recipes.Token // that a term has published, or tried to
	led     map[int]int              // terms, by candidate
	excused map[recipes.Token]bool   // lost to somebody's doing, which no clock foretells
}

// excuse says that the nodes with these names are about to be removed.
func (o *oracle) excuse(e *locktest.Env, remove func(name string, owner int64) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range e.Children(locktest.Path) {
		if stat, ok := e.Stat(locktest.Path + "/" + name); ok && remove(name, stat.EphemeralOwner) {
			o.excused[recipes.Token(stat.Czxid)] = true
		}
	}
}

// saw is told of a term as soon as the program has it.
func (o *oracle) saw(g *recipes.Grant) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.terms++
	if o.last != nil {
		select {
		case <-o.last.Done():
		default:
			if !o.excused[o.last.Token()] {
				o.t.Errorf("term %v while term %v lasts", g.Token(), o.last.Token())
			}
		}
		if g.Token() <= o.last.Token() {
			o.t.Errorf("token %v after %v", g.Token(), o.last.Token())
		}
	}
	o.last = g
}

// mayPublish says that a term is about to publish this value.
func (o *oracle) mayPublish(v string, token recipes.Token) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.values[v] = token
}

// observer checks that terms come in order, and that no value is shown that its
// leader has not published. Values of a Campaign are published before its token is
// known to the program.
func (o *oracle) observer(ctx context.Context, el *election.Election, last *election.Leader, wg *sync.WaitGroup) {
	wg.Go(func() {
		var highest recipes.Token
		for l, err := range el.Observe(ctx) {
			if err != nil && !errors.Is(err, election.ErrNoLeader) {
				o.t.Errorf("observer: %v", err)
				return
			}
			if err == nil {
				if l.Token < highest {
					o.t.Errorf("observed token %v after %v", l.Token, highest)
				}
				highest = l.Token
				o.mu.Lock()
				if token, ok := o.values[string(l.Value)]; !ok || token != 0 && token != l.Token {
					o.t.Errorf("observed %q of token %v, published by %v", l.Value, l.Token, token)
				}
				o.mu.Unlock()
			}
			o.mu.Lock()
			*last = l
			o.mu.Unlock()
		}
	})
}

var seeds = flag.Int("seeds", 3, "how many random elections to hold")

// Candidates campaign, lead, proclaim, resign, name successors and die at random;
// connections break, sessions expire, operators delete nodes. One leads at a time,
// tokens rise, observers see nothing that was not so and end up with the truth,
// and at the end everybody who still wants to leads once more.
func TestRandomElections(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) { randomElections(e, uint64(seed)) })
		})
	}
}

func randomElections(e *locktest.Env, seed uint64) {
	const candidates = 6
	r := rand.New(rand.NewPCG(seed, 1))
	o := &oracle{t: e.T, values: map[string]recipes.Token{}, led: map[int]int{}, excused: map[recipes.Token]bool{}}
	stop, stopNow := context.WithCancel(e.T.Context())
	var sessions []*session.Session
	var wg, watching sync.WaitGroup
	var opts []recipes.Option
	if seed%4 == 0 {
		opts = append(opts, recipes.LockDelay(3*time.Second))
	}
	for i := range candidates {
		if i%3 != 2 { // some share one
			sessions = append(sessions, e.Open())
		}
		el := on(e, sessions[len(sessions)-1], opts...)
		mine := rand.New(rand.NewPCG(seed, uint64(10+i)))
		wg.Go(func() {
			for n := 0; stop.Err() == nil; n++ {
				lead(stop, e, o, el, mine, i, n)
			}
		})
	}
	observers := make([]election.Leader, 3)
	watch, stopWatching := context.WithCancel(e.T.Context())
	for i := range observers {
		s := e.Open()
		sessions = append(sessions, s)
		o.observer(watch, on(e, s), &observers[i], &watching)
	}
	for range 60 {
		time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		s := sessions[r.IntN(len(sessions))]
		switch r.IntN(8) {
		case 0:
			id := s.ID()
			o.excuse(e, func(_ string, owner int64) bool { return owner == id })
			e.Expire(id)
		case 1, 2:
			e.Cut(s.ID())
		case 3:
			id := s.ID()
			e.BlackHole(id, []zktest.Direction{zktest.Both, zktest.ToServer, zktest.ToClient}[r.IntN(3)])
			time.AfterFunc(time.Duration(r.IntN(20))*time.Second, e.Heal)
		case 4:
			if c := e.Children(locktest.Path); len(c) > 0 {
				name := c[r.IntN(len(c))]
				o.excuse(e, func(n string, _ int64) bool { return n == name })
				e.Delete(locktest.Path + "/" + name)
			}
		case 5:
			e.LoseReply(zktest.OpMulti, 1+r.IntN(3))
		case 6:
			e.LoseReply(zktest.OpCreate2, 1+r.IntN(2))
		}
	}
	time.Sleep(20 * time.Second)
	e.Heal()
	stopNow()
	wg.Wait()
	e.Empty()
	// Everybody leads once more, in order, and is seen.
	time.Sleep(30 * time.Second)
	for i := range candidates {
		o.mayPublish(fmt.Sprint("last ", i), 0)
		term := elected(e, on(e, sessions[i%4]), fmt.Sprint("last ", i))
		o.saw(term.Grant)
		synctest.Wait()
		o.mu.Lock()
		for _, l := range observers {
			if l.Token != term.Token() {
				e.T.Errorf("observer ended up with %v, leader is %v", l.Token, term.Token())
			}
		}
		o.mu.Unlock()
		resign(e, term)
		synctest.Wait()
		o.mu.Lock()
		for _, l := range observers {
			if l.Token != 0 {
				e.T.Errorf("observer ended up with %v, nobody leads", l.Token)
			}
		}
		o.mu.Unlock()
	}
	e.Empty()
	stopWatching()
	watching.Wait()
	if o.terms < 20 || len(o.led) < candidates {
		e.T.Errorf("%d terms only, of %d candidates", o.terms, len(o.led))
	}
	time.Sleep(30 * time.Second)
}

// lead is one campaign of candidate i, the n-th, and what follows.
func lead(stop context.Context, e *locktest.Env, o *oracle, el *election.Election, r *rand.Rand, i, n int) {
	ctx, cancel := context.WithCancel(stop)
	defer cancel()
	if r.IntN(4) == 0 { // impatient
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(4000))*time.Millisecond)
		defer cancel()
	}
	v := fmt.Sprintf("%d.%d", i, n)
	o.mayPublish(v, 0)
	term, err := el.Campaign(ctx, []byte(v))
	if err != nil {
		if ctx.Err() == nil {
			e.T.Errorf("campaign: %v", err)
		}
		return
	}
	o.saw(term.Grant)
	o.mu.Lock()
	o.led[i]++
	o.mu.Unlock()
	for k := range r.IntN(4) {
		time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
		v := fmt.Sprintf("%d.%d.%d", i, n, k)
		o.mayPublish(v, term.Token())
		if err := term.Proclaim(ctx, []byte(v)); err != nil && ctx.Err() == nil && !errors.Is(err, recipes.ErrRevoked) {
			e.T.Errorf("proclaim: %v", err)
		}
	}
	switch r.IntN(3) {
	case 0:
		if cs, err := el.Contenders(ctx); err == nil && len(cs) > 0 {
			err = term.ResignTo(ctx, cs[r.IntN(len(cs))].ID)
			if err != nil && ctx.Err() == nil && !errors.Is(err, recipes.ErrRevoked) {
				e.T.Errorf("ResignTo: %v", err)
			}
			return
		}
		fallthrough
	default:
		if err := term.Resign(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, recipes.ErrRevoked) {
			e.T.Errorf("Resign: %v", err)
		}
	}
}
