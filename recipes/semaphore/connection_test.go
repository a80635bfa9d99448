package semaphore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 6: the connection is lost with each request of the way to the grant and back,
// before it is carried out or after; permits in use are those of the living.
func TestConnectionIsLostAtEachRequest(t *testing.T) {
	for _, way := range []string{"free", "some held", "full", "behind another", "try"} {
		ops := opsOf(t, way)
		for i, op := range ops {
			nth := 0
			for _, o := range ops[:i+1] {
				if o == op {
					nth++
				}
			}
			for fault, lose := range map[string]func(*zktest.Server, zktest.Op, int){
				"reply": (*zktest.Server).LoseReply, "request": (*zktest.Server).LoseRequest,
			} {
				t.Run(fmt.Sprintf("%s/%s %v of %d is lost", way, fault, op, nth), func(t *testing.T) {
					run(t, func(e env) {
						acquireAndRelease(e, way, func() { lose(e.Server, op, nth) })
						e.contenders(0)
						e.Release(e.try(e.fresh(3), 3).Grant(time.Second))
					})
				})
			}
		}
	}
}

// opsOf lists what the server is asked for.
func opsOf(t *testing.T, way string) (ops []zktest.Op) {
	run(t, func(e env) {
		acquireAndRelease(e, way, func() {
			e.OnRequest(func(r zktest.Request) { ops = append(ops, r.Op) })
		})
		e.OnRequest(nil)
	})
	if len(ops) < 4 {
		t.Fatalf("only %v seen", ops)
	}
	return ops
}

// acquireAndRelease takes two of three permits and gives them back. It calls ready
// when the sessions stand.
func acquireAndRelease(e env, way string, ready func()) {
	w := &watchman{size: 3}
	s := e.fresh(3)
	var others []*recipes.Grant
	take := e.take
	switch way {
	case "some held":
		others = append(others, e.held(e.fresh(3), 1))
	case "full":
		others = append(others, e.held(e.fresh(3), 1), e.held(e.fresh(3), 1), e.held(e.fresh(3), 1))
	case "behind another":
		others = append(others, e.held(e.fresh(3), 2), e.held(e.fresh(3), 1))
	case "try":
		others = append(others, e.held(e.fresh(3), 1))
		take = e.try
	}
	for _, g := range others {
		w.saw(e.T, g)
	}
	var ahead *locktest.Attempt
	if way == "behind another" {
		ahead = e.take(e.fresh(3), 2)
		e.contenders(3)
	}
	ready()
	a := take(s, 2)
	time.Sleep(3 * time.Second)
	release := func(g *recipes.Grant) {
		// It may be by the faulty connection: the release goes on.
		if err := g.Release(e.T.Context()); err != nil {
			e.T.Error(err)
		}
	}
	for _, g := range others {
		if way == "full" || way == "behind another" {
			release(g)
			time.Sleep(time.Second)
		}
	}
	if ahead != nil {
		g := ahead.Grant(time.Minute)
		w.saw(e.T, g)
		time.Sleep(time.Second)
		release(g)
	}
	g := a.Grant(time.Minute)
	w.saw(e.T, g)
	if len(g.Slots()) != 2 {
		e.T.Errorf("slots %v", g.Slots())
	}
	if names := leases(e.Children(locktest.Path)); way == "free" && len(names) != 1 {
		e.T.Errorf("nodes of one request: %q", names)
	}
	release(g)
	for _, g := range others {
		release(g) // where that was not yet done
	}
}
