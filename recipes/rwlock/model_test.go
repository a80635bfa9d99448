package rwlock_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// An action is one thing that happens to the lock. Which contender it happens to is
// drawn as a number, of those that can be meant at that moment.
type action struct {
	Do    string
	Which int
}

var actions = rapid.Custom(func(t *rapid.T) action {
	do := rapid.SampledFrom([]string{"read", "read", "read", "write", "write", "release", "release", "release",
		"give up", "remove", "expire", "let in", "cut"}).Draw(t, "do")
	return action{do, rapid.IntRange(0, 30).Draw(t, "which")}
})

// A contender in the model: a line in which each either holds or waits.
type contender struct {
	writes  bool
	session int
	under   *contender // the writer that it was let in under
	a       *locktest.Attempt
}

// entitled is the rule: a reader waits for the writers before it, a writer for all
// before it, and nobody for those that share its place.
func entitled(line []*contender, c *contender) bool {
	for _, o := range line {
		if o == c {
			break
		}
		if (o.writes || c.writes) && c.under != o && o.under != c {
			return false
		}
	}
	return true
}

type play struct {
	*env
	sessions []*session.Session
	locks    []*rwlock.RWLock
	line     []*contender
	fault    string
}

// case 61, case 62, case 63: readers and writers come, release, give up, are removed,
// lose their sessions and become readers at random. After each of these, exactly
// those hold that may, as the few lines above say.
func TestAgainstModel(t *testing.T) {
	for range 3 { // as many runs as rapid is told to make, each time
		rapid.Check(t, func(rt *rapid.T) {
			script := rapid.SliceOfN(actions, 5, 40).Draw(rt, "script")
			var fault string
			run(t, func(e *env) { fault = perform(e, script) }, zktest.AllowOpenSessions())
			if fault != "" {
				rt.Fatal(fault)
			}
		})
	}
}

func perform(e *env, script []action) string {
	p := &play{env: e}
	for range 3 {
		s := e.Open()
		p.sessions = append(p.sessions, s)
		p.locks = append(p.locks, e.rw(s, recipes.FailOnLoss()))
	}
	for _, a := range script {
		p.do(a)
		time.Sleep(20 * time.Millisecond)
		p.compare(a)
		if p.fault != "" {
			break
		}
	}
	for len(p.line) > 0 && p.fault == "" { // let it drain
		p.do(action{"release", 0})
		time.Sleep(20 * time.Millisecond)
		p.compare(action{"drain", 0})
	}
	if p.fault != "" {
		for _, c := range p.line {
			c.a.Cancel()
			if g, err := c.a.Result(); err == nil {
				g.Release(e.T.Context())
			}
		}
		return p.fault
	}
	e.Empty()
	return ""
}

// compare checks that those hold who may.
func (p *play) compare(after action) {
	for i, c := range p.line {
		may := entitled(p.line, c)
		if waits := c.a.Pending(); waits == may {
			p.fault = fmt.Sprintf("after %v: contender %d of %d waits: %v", after, i, len(p.line), waits)
			return
		}
		if !may {
			continue
		}
		if g, err := c.a.Result(); err != nil || g.Err() != nil {
			p.fault = fmt.Sprintf("after %v: contender %d: %v", after, i, errors.Join(err, g.Err()))
		}
	}
}

// pick returns one of those that which is true of; nil if there is none.
func (p *play) pick(n int, which func(c *contender) bool) *contender {
	var some []*contender
	for _, c := range p.line {
		if which(c) {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[n%len(some)]
}

func (p *play) drop(c *contender) {
	p.line = slices.DeleteFunc(p.line, func(o *contender) bool { return o == c })
}

func (p *play) do(a action) {
	holds := func(c *contender) bool { return entitled(p.line, c) }
	switch a.Do {
	case "read", "write":
		c := &contender{writes: a.Do == "write", session: a.Which % 3}
		l := p.locks[c.session]
		lock := l.RLock
		if c.writes {
			lock = l.Lock
		}
		if may := entitled(append(slices.Clone(p.line), c), c); a.Which%2 == 0 { // try, and be busy or have it
			try := l.TryRLock
			if c.writes {
				try = l.TryLock
			}
			if may {
				lock = try
			} else {
				p.Start(try).Fails(time.Second, recipes.ErrBusy)
			}
		}
		c.a = p.Start(lock)
		p.line = append(p.line, c)
	case "release":
		if c := p.pick(a.Which, holds); c != nil {
			g, _ := c.a.Result()
			p.Release(g)
			p.drop(c)
		}
	case "give up":
		if c := p.pick(a.Which, func(c *contender) bool { return !holds(c) }); c != nil {
			c.a.Cancel()
			c.a.Result()
			p.drop(c)
		}
	case "remove":
		if c := p.pick(a.Which, holds); c != nil {
			g, _ := c.a.Result()
			p.Delete(node(g))
			<-g.Done()
			p.drop(c)
		}
	case "expire":
		n := a.Which % 3
		p.Expire(p.sessions[n].ID())
		for c := p.pick(0, func(c *contender) bool { return c.session == n }); c != nil; c = p.pick(0, func(c *contender) bool { return c.session == n }) {
			if g, err := c.a.Result(); err == nil {
				<-g.Done()
			}
			p.drop(c)
		}
		time.Sleep(10 * time.Second) // a new one stands
	case "let in":
		w := p.pick(a.Which, func(c *contender) bool { return c.writes && holds(c) })
		if w == nil {
			return
		}
		g, _ := w.a.Result()
		c := &contender{session: w.session, under: w, a: p.StartContext(g.Context(p.T.Context()), p.locks[a.Which%3].RLock)}
		if _, err := c.a.Result(); err != nil {
			p.fault = err.Error()
		}
		p.line = slices.Insert(p.line, slices.Index(p.line, w)+1, c)
	case "cut": // a blip
		p.Cut(p.sessions[a.Which%3].ID())
		time.Sleep(3 * time.Second)
	}
}
