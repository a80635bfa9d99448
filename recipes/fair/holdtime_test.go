package fair_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
)

// A tenant is a flow that wants the lock all the time.
type tenant struct {
	weight  int
	hold    time.Duration
	backlog int // requests that it has out
	opts    []recipes.Option
}

func (x tenant) String() string { return fmt.Sprintf("%d×%v", x.weight, x.hold) }

// A course is what there is to say of tenants that shared a lock for some time.
type course struct {
	grants []int
	held   []time.Duration
	lead   [][]time.Duration // by how much one got further ahead of another at most, by weight
	idle   time.Duration     // for which nobody held, without that of one hand-over for each grant
	took   time.Duration
}

// share has tenants share a lock until there were n grants.
func (e env) share(tenants []tenant, n int, seed uint64, opts ...recipes.Option) *course {
	rnd := rand.New(rand.NewPCG(seed, 4))
	k := len(tenants)
	c := &course{grants: make([]int, k), held: make([]time.Duration, k), lead: make([][]time.Duration, k)}
	least := make([][]float64, k) // of the difference
	for i := range tenants {
		c.lead[i], least[i] = make([]time.Duration, k), make([]float64, k)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(e.T.Context())
	defer cancel()
	e.Delay(time.Millisecond)
	start := e.Lock(e.lock()) // until all are there
	total := 0
	began := time.Time{}
	for i, x := range tenants {
		l := e.lock(with(opts, append(x.opts, fair.Flow(fmt.Sprint("flow ", i), x.weight))...)...)
		for range x.backlog {
			wg.Go(func() {
				for {
					g, err := l.Lock(ctx)
					if err != nil {
						return
					}
					d := x.hold
					mu.Lock()
					if x.hold > time.Millisecond {
						d += time.Duration(rnd.Int64N(int64(x.hold)/5+1)) - x.hold/10
					}
					mu.Unlock()
					time.Sleep(d)
					mu.Lock()
					if total++; total > n {
						cancel()
					} else {
						c.grants[i]++
						c.held[i] += d
						for j := range tenants {
							for _, ij := range [][2]int{{i, j}, {j, i}} {
								a, b := ij[0], ij[1]
								ahead := c.held[a].Seconds()/float64(tenants[a].weight) - c.held[b].Seconds()/float64(tenants[b].weight)
								least[a][b] = min(least[a][b], ahead)
								c.lead[a][b] = max(c.lead[a][b], time.Duration((ahead-least[a][b])*1e9))
							}
						}
						c.took = time.Since(began)
					}
					mu.Unlock()
					g.Release(context.WithoutCancel(ctx))
				}
			})
			time.Sleep(20 * time.Millisecond)
		}
	}
	time.Sleep(time.Second)
	began = time.Now()
	e.Release(start)
	wg.Wait()
	e.Delay(0)
	e.empty()
	c.idle = c.took
	for _, d := range c.held {
		c.idle -= d
	}
	return c
}

func TestExplore(t *testing.T) {
	ms := time.Millisecond
	for _, tenants := range [][]tenant{
		{{1, 100 * ms, 3, nil}, {1, 10 * ms, 3, nil}},
		{{1, 100 * ms, 3, nil}, {1, 10 * ms, 30, nil}},
		{{2, 100 * ms, 5, nil}, {1, 10 * ms, 5, nil}},
		{{1, 100 * ms, 5, nil}, {3, 10 * ms, 8, nil}},
		{{1, 100 * ms, 3, nil}, {1, 100 * ms, 3, nil}, {1, 10 * ms, 3, nil}},
		{{1, 100 * ms, 3, nil}, {2, 30 * ms, 6, nil}, {4, 10 * ms, 8, nil}},
		{{1, 100 * ms, 3, nil}, {1, 100 * ms, 3, nil}, {1, 50 * ms, 3, nil}, {1, 50 * ms, 3, nil}, {1, 10 * ms, 3, nil}, {1, 10 * ms, 3, nil}, {1, 10 * ms, 3, nil}, {1, 10 * ms, 3, nil}},
		{{1, 10 * ms, 3, nil}},
		{{2, 10 * ms, 6, nil}},
		{{3, 10 * ms, 6, nil}},
		{{5, 10 * ms, 8, nil}},
	} {
		for _, opts := range [][]recipes.Option{{fair.ByHoldTime()}, nil} {
			if opts == nil && len(tenants) > 1 {
				continue
			}
			run(t, func(e env) {
				c := e.share(tenants, 400, 1, opts...)
				var b strings.Builder
				fmt.Fprintf(&b, "%v took %v idle/grant %v:", len(opts), c.took, c.idle/400)
				for i, x := range tenants {
					lead := time.Duration(0)
					for _, d := range c.lead[i] {
						lead = max(lead, d)
					}
					fmt.Fprintf(&b, "  %v: %d grants, %v by weight, lead %.2f holds", x, c.grants[i], c.held[i]/time.Duration(x.weight), float64(lead)/float64(x.hold))
				}
				t.Log(b.String())
			})
		}
	}
}
