package fair_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// Flows of random weights, whose contenders arrive, wait, give up, hold, try and leave
// as it comes, of sessions that are cut, cut off and ended meanwhile: what the
// package's documentation says of flows holds at every moment. An observer looks at
// the server before each of its changes.
func TestFlows(t *testing.T) {
	for _, calm := range []bool{true, false} {
		t.Run(fmt.Sprintf("calm=%v", calm), func(t *testing.T) {
			seeds(t, 12, func(t *testing.T, seed uint64) {
				run(t, func(e env) { contend(e, seed, calm) }, zktest.AllowOpenSessions(), zktest.ReapInterval(time.Second))
			})
		})
	}
}

// An observer checks what is to be seen on the server.
type observer struct {
	locktest.Witness
	e      env
	weight map[string]int

	mu    sync.Mutex
	seen  map[string]*sighting // by the path of a node in the lock's queue
	gates map[string]int64     // by request: when it came before the gate
	last  map[string]int64     // by flow: of the one that came last to the lock's queue
	token map[recipes.Token]*sighting
}

// A sighting is a node in the lock's queue as it was first seen.
type sighting struct {
	flow   string
	bound  int // grants that may come before its own
	grants int // that there had been
}

func observe(e env, weight map[string]int) *observer {
	o := &observer{
		e: e, weight: weight, seen: map[string]*sighting{}, gates: map[string]int64{}, last: map[string]int64{},
		token: map[recipes.Token]*sighting{},
	}
	e.OnRequest(func(r zktest.Request) {
		switch r.Op {
		case zktest.OpCreate2, zktest.OpMulti, zktest.OpDelete:
			o.glance()
		}
	})
	return o
}

func (o *observer) glance() {
	o.e.WaitFor(context.Background(), func(v *zktest.View) bool { o.look(v); return true })
}

func (o *observer) look(v *zktest.View) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for flow := range o.weight {
		dir := flows + "/" + flow
		for _, name := range v.Children(dir + "/queue") {
			if data, _ := v.Data(dir + "/queue/" + name); len(data) > 0 {
				st, _ := v.Stat(dir + "/queue/" + name)
				o.gates[parseData(data).Request] = st.Czxid
			}
		}
		if n := len(v.Children(dir + "/line")); n > o.weight[flow] {
			o.e.T.Errorf("%d markers of flow %q", n, flow)
		}
	}
	others := 0
	for _, w := range o.weight {
		others += w
	}
	waiting, ahead := map[string]int{}, map[string]int{}
	dir, _ := v.Stat(locktest.Path)
	stamp := strconv.FormatInt(dir.Czxid, 16)
	line := slices.DeleteFunc(inLine(v), func(name string) bool { // made for an earlier directory, and about to go
		return !strings.HasPrefix(name, stamp+"-")
	})
	for i, name := range line {
		path := locktest.Path + "/" + name
		data, _ := v.Data(path)
		d := parseData(data)
		st, _ := v.Stat(path)
		if d.Request != "" && i > 0 {
			waiting[d.Flow]++
			if n := waiting[d.Flow]; n > o.weight[d.Flow] {
				o.e.T.Errorf("%d of flow %q wait in the lock's queue %s", n, d.Flow, dump(v))
			}
		}
		if o.seen[path] == nil {
			s := &sighting{flow: d.Flow, grants: o.Count(), bound: others - o.weight[d.Flow] + 1 + ahead[d.Flow]}
			o.seen[path], o.token[recipes.Token(st.Czxid)] = s, s
			if came := o.gates[d.Request]; d.Request != "" {
				if came == 0 {
					o.e.T.Errorf("a contender of %q that did not pass the gate", d.Flow)
				}
				if came < o.last[d.Flow] {
					o.e.T.Errorf("flow %q: one that came at %d after one that came at %d", d.Flow, came, o.last[d.Flow])
				}
				o.last[d.Flow] = came
			}
		}
		if d.Request != "" {
			ahead[d.Flow]++
		}
	}
}

// granted is told of every grant, at once.
func (o *observer) granted(g *recipes.Grant) {
	o.glance()
	o.mu.Lock()
	s := o.token[g.Token()]
	o.mu.Unlock()
	if s == nil {
		o.e.T.Errorf("the node of a grant was never seen")
		return
	}
	if n := o.Count() - s.grants; n > s.bound {
		o.e.T.Errorf("flow %q: %d grants after it came to the queue, want %d at most", s.flow, n, s.bound)
	}
	o.Saw(o.e.T, g)
}

func contend(e env, seed uint64, calm bool) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	var mu sync.Mutex
	number := func(n int) int { mu.Lock(); defer mu.Unlock(); return rnd.IntN(n) }
	ms := func(n int) time.Duration { return time.Duration(number(n)) * time.Millisecond }

	weight := map[string]int{}
	for i := range 2 + number(3) {
		weight[string(rune('a'+i))] = 1 + number(4)
	}
	var opts []recipes.Option
	if seed%3 == 0 {
		opts = append(opts, fair.ByHoldTime())
	}
	var sessions []*session.Session
	for range 2 + number(4) {
		sessions = append(sessions, e.Open())
	}
	o := observe(e, weight)
	e.Delay(time.Duration(number(3)) * time.Millisecond)

	hold := func(g *recipes.Grant, err error) bool {
		if err != nil {
			return false
		}
		if g.Err() == nil {
			o.granted(g)
			select {
			case <-time.After(ms(30)):
			case <-g.Done():
			}
		}
		if err := g.Release(context.Background()); err != nil && !errors.Is(err, recipes.ErrRevoked) {
			e.T.Errorf("release: %v", err)
		}
		return true
	}
	var wg sync.WaitGroup
	for flow, w := range weight {
		for i := range 2 + number(6) {
			l := e.at(sessions[(i+number(2))%len(sessions)], with(opts, fair.Flow(flow, w))...)
			wg.Go(func() {
				for range 5 {
					time.Sleep(ms(100))
					ctx, cancel := context.WithCancel(context.Background())
					switch number(6) {
					case 0: // tries until it gets it, or loses patience
						for range 5 {
							g, err := l.TryLock(ctx)
							if hold(g, err) {
								break
							}
							if !errors.Is(err, recipes.ErrBusy) && !errors.Is(err, recipes.ErrSessionLost) {
								e.T.Errorf("trylock: %v", err)
							}
							time.Sleep(ms(20))
						}
					case 1: // gives up
						time.AfterFunc(ms(200), cancel)
						if g, err := l.Lock(ctx); !hold(g, err) && !errors.Is(err, context.Canceled) {
							e.T.Errorf("lock: %v", err)
						}
					case 2, 3: // a ticket, for a time or until it has the lock
						x, err := l.Join(ctx)
						if err != nil {
							e.T.Errorf("join: %v", err)
							break
						}
						if number(2) == 0 {
							time.AfterFunc(ms(200), cancel)
						}
						time.Sleep(ms(30))
						hold(x.Wait(ctx))
						x.Leave(context.Background())
					default:
						if !hold(l.Lock(ctx)) {
							e.T.Error("Lock failed")
						}
					}
					cancel()
				}
			})
		}
	}
	stop := make(chan struct{})
	var adversary sync.WaitGroup
	if !calm {
		adversary.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(ms(300)):
				}
				s := sessions[number(len(sessions))]
				switch number(5) {
				case 0:
					e.expire(s)
				case 1:
					e.Cut(s.ID())
				case 2:
					e.BlackHole(s.ID(), zktest.Direction(1+number(3)))
					time.Sleep(ms(15000))
					e.Heal()
				case 3:
					e.LoseReply([]zktest.Op{zktest.OpCreate2, zktest.OpMulti, zktest.OpDelete, zktest.OpGetChildren2}[number(4)], 1+number(4))
				case 4:
					e.LoseRequest([]zktest.Op{zktest.OpCreate2, zktest.OpMulti, zktest.OpDelete, zktest.OpGetData}[number(4)], 1+number(4))
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	adversary.Wait()
	e.Heal()
	e.Delay(0)
	e.OnRequest(nil)
	time.Sleep(time.Minute) // sessions come back, old ones expire
	for flow, w := range weight {
		e.Release(e.Lock(e.at(sessions[0], with(opts, fair.Flow(flow, w))...)))
	}
	e.empty()
}
