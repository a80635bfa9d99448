package fair_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A tenant is a flow that wants the lock all the time.
type tenant struct {
	weight  int // 0: without a flow
	hold    time.Duration
	backlog int // requests that it has out
	opts    []recipes.Option
}

func (x tenant) String() string { return fmt.Sprintf("%d×%v", x.weight, x.hold) }

// A course is what there is to say of tenants that shared a lock for some time.
type course struct {
	grants []int
	held   []time.Duration
	lead   [][]time.Duration // by how much one was ahead of another at most, by weight
	idle   time.Duration     // for which nobody held, without that of one hand-over for each grant
	took   time.Duration
}

// share has tenants share a lock until there were n grants.
func (e env) share(tenants []tenant, n int, seed uint64, opts ...recipes.Option) *course {
	rnd := rand.New(rand.NewPCG(seed, 4))
	k := len(tenants)
	c := &course{grants: make([]int, k), held: make([]time.Duration, k), lead: make([][]time.Duration, k)}
	for i := range tenants {
		c.lead[i] = make([]time.Duration, k)
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
		own := with(opts, x.opts...)
		if x.weight > 0 {
			own = append(own, fair.Flow(fmt.Sprint("flow ", i), x.weight))
		}
		l := e.lock(own...)
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
								c.lead[a][b] = max(c.lead[a][b], time.Duration(ahead*1e9))
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

// Flows that want the lock all the time hold it for times that are as their weights,
// whatever one holding takes. None is ahead of another by more than four of its turns,
// a turn being as many of its longest holdings as its weight; and the lock goes from
// hand to hand as fast as it does without the option.
func TestSharesOfTimeAreAsTheWeights(t *testing.T) {
	const ms = time.Millisecond
	for _, tenants := range [][]tenant{
		{{1, 100 * ms, 3, nil}, {1, 10 * ms, 3, nil}},
		{{1, 100 * ms, 3, nil}, {1, 10 * ms, 30, nil}},
		{{2, 100 * ms, 5, nil}, {1, 10 * ms, 5, nil}},
		{{1, 100 * ms, 5, nil}, {3, 10 * ms, 8, nil}},
		{{1, 100 * ms, 3, nil}, {1, 100 * ms, 3, nil}, {1, 10 * ms, 3, nil}},
		{{1, 100 * ms, 3, nil}, {2, 30 * ms, 6, nil}, {4, 10 * ms, 8, nil}},
		{
			{1, 100 * ms, 3, nil}, {1, 100 * ms, 3, nil}, {1, 50 * ms, 3, nil}, {1, 50 * ms, 3, nil},
			{1, 10 * ms, 3, nil}, {1, 10 * ms, 3, nil}, {1, 10 * ms, 3, nil}, {1, 10 * ms, 3, nil},
		},
		{{1, 10 * ms, 3, nil}, {1, 10 * ms, 3, nil}},
		{{3, 10 * ms, 7, nil}, {3, 10 * ms, 7, nil}},
		{{1, 10 * ms, 7, nil}, {4, 10 * ms, 7, nil}},
	} {
		t.Run(fmt.Sprint(tenants), func(t *testing.T) {
			t.Parallel()
			run(t, func(e env) {
				const grants = 300
				c := e.share(tenants, grants, 1, fair.ByHoldTime())
				for i, x := range tenants {
					t.Logf("%v: %d grants, %v by weight, ahead by %v at most", x, c.grants[i], c.held[i]/time.Duration(x.weight), c.lead[i])
					longest := x.hold * 11 / 10
					for j := range tenants {
						if c.lead[i][j] > 4*longest {
							t.Errorf("%v was ahead of %v by %v", x, tenants[j], c.lead[i][j])
						}
					}
				}
				if each := c.idle / grants; each > 21*ms/10 { // a round trip is 1 ms
					t.Errorf("nobody held for %v at each hand-over", each)
				}
			})
		})
	}
}

// A flow that is alone never sits out.
func TestAloneByHoldTime(t *testing.T) {
	for _, weight := range []int{1, 2, 3, 5, 8} {
		t.Run(fmt.Sprint("weight ", weight), func(t *testing.T) {
			t.Parallel()
			took := map[bool]time.Duration{}
			for _, byTime := range []bool{true, false} {
				var opts []recipes.Option
				if byTime {
					opts = append(opts, fair.ByHoldTime())
				}
				run(t, func(e env) {
					took[byTime] = e.share([]tenant{{weight, 10 * time.Millisecond, weight + 4, nil}}, 100, 1, opts...).took
				})
			}
			if took[true] != took[false] {
				t.Errorf("took %v, and %v without the option", took[true], took[false])
			}
		})
	}
}

// What a flow did while it was away, and while the other was, counts neither for it nor
// against it.
func TestNoCreditAndNoDebt(t *testing.T) {
	run(t, func(e env) {
		const ms = time.Millisecond
		a, b := e.lock(fair.Flow("a", 1), fair.ByHoldTime()), e.lock(fair.Flow("b", 1), fair.ByHoldTime())
		hold := func(l *fair.Lock, n int) {
			for range n {
				g := e.Lock(l)
				time.Sleep(100 * ms)
				e.Release(g)
			}
		}
		hold(b, 3)
		hold(a, 50) // while nobody else wants it
		turns := func() string {
			var mu sync.Mutex
			var order strings.Builder
			var wg sync.WaitGroup
			g := e.Lock(e.lock())
			for range 10 {
				for name, l := range map[string]*fair.Lock{"a": a, "b": b} {
					wg.Go(func() {
						g := e.Lock(l)
						mu.Lock()
						order.WriteString(name)
						mu.Unlock()
						time.Sleep(100 * ms)
						e.Release(g)
					})
				}
			}
			time.Sleep(time.Second)
			e.Release(g)
			wg.Wait()
			return order.String()
		}
		for _, when := range []string{"after a was alone", "after both"} {
			order := turns()
			for i := range order {
				if ahead := strings.Count(order[:i], "a") - strings.Count(order[:i], "b"); ahead > 4 || ahead < -4 {
					t.Errorf("%s: %s", when, order)
					break
				}
			}
			hold(b, 50)
		}
		e.empty()
	})
}

// The account of a flow is removed, or somebody else's data is put there: it begins
// anew, or is left alone, and the lock goes on.
func TestAccountIsRemoved(t *testing.T) {
	run(t, func(e env) {
		l := e.lock(fair.Flow("a", 1), fair.ByHoldTime())
		e.Release(e.Lock(l))
		if data, _ := e.Data(flows + "/a"); !strings.HasPrefix(string(data), "lockkeeper flow used=") {
			t.Fatalf("%q", data)
		}
		g := e.Lock(l)
		e.Set(flows+"/a", []byte("not ours"))
		e.Release(g)
		e.Release(e.Lock(l))
		g = e.Lock(l)
		if err := e.DeleteAll(flows); err != nil {
			t.Fatal(err)
		}
		e.Release(g)
		e.Release(e.Lock(l))
		e.Release(e.Lock(l))
		if data, _ := e.Data(flows + "/a"); !strings.HasPrefix(string(data), "lockkeeper flow used=") {
			t.Errorf("%q", data)
		}
		e.empty()
	})
}

// The flow's nodes are reaped while the lock is held: a release is one all the same, after
// which no lock delay is due.
func TestAccountIsReapedWhileHeldWithALockDelay(t *testing.T) {
	run(t, func(e env) {
		opts := []recipes.Option{fair.ByHoldTime(), recipes.LockDelay(time.Hour)}
		g := e.Lock(e.lock(append(opts, fair.Flow("a", 1))...))
		time.Sleep(10 * time.Minute)
		if e.Exists(flows + "/a") {
			t.Fatalf("not reaped:\n%s", e.Tree())
		}
		next := e.Start(e.lock(append(opts, fair.Flow("b", 1))...).Lock)
		synctest.Wait()
		e.Release(g)
		e.Release(next.Grant(time.Second))
		e.empty()
	}, zktest.ReapInterval(time.Minute))
}

// Clients without the option, with a flow or without, and others that share: all go on,
// and those that share do so among each other.
func TestClientsWithoutTheOption(t *testing.T) {
	run(t, func(e env) {
		const ms = time.Millisecond
		byTime := []recipes.Option{fair.ByHoldTime()}
		tenants := []tenant{{1, 50 * ms, 3, byTime}, {1, 10 * ms, 3, byTime}, {1, 20 * ms, 3, nil}}
		c := e.share(tenants, 300, 1)
		for i, x := range tenants {
			t.Logf("%v: %d grants, %v, ahead by %v at most", x, c.grants[i], c.held[i], c.lead[i])
		}
		if c.lead[0][1] > 4*55*ms || c.lead[1][0] > 4*11*ms {
			t.Error("the two with the option don't share the time")
		}
		if c.grants[2] < 80 {
			t.Error("the one without it does not get its turns")
		}
	})
}

// The time for which the lock is kept for a ticket counts, whether the ticket is waited
// for in the end or left.
func TestTimeOfATicketCounts(t *testing.T) {
	for _, leaves := range []bool{true, false} {
		run(t, func(e env) {
			l := e.lock(fair.Flow("a", 1), fair.ByHoldTime())
			x := e.joined(l)
			time.Sleep(3 * time.Second)
			if leaves {
				e.leave(x)
			} else {
				g := e.Start(x.Wait).Grant(now)
				time.Sleep(2 * time.Second)
				e.Release(g)
			}
			want := map[bool]string{true: "lockkeeper flow used=3000000 turn=3000000", false: "lockkeeper flow used=5000000 turn=5000000"}[leaves]
			if data, _ := e.Data(flows + "/a"); !strings.HasPrefix(string(data), want+" dir=") {
				t.Errorf("leaves %v: %q, want %q", leaves, data, want)
			}
			e.empty()
		})
	}
}
