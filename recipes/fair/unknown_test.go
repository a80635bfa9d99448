package fair_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 1, case 6: the connection is lost with each request of a contender's way, before
// it is carried out or after: from the place before the gate to the release, or to
// where it is left.
func TestConnectionIsLostAtEachRequest(t *testing.T) {
	for name, opts := range map[string][]recipes.Option{
		"plain":   nil,
		"flow":    {fair.Flow("a", 1)},
		"by time": {fair.Flow("a", 1), fair.ByHoldTime()},
	} {
		for _, way := range []string{"at once", "waits", "leaves", "changes the weight"} {
			if name == "plain" && way == "changes the weight" {
				continue
			}
			ops := opsOf(t, way, opts)
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
					t.Run(fmt.Sprintf("%s/%s/%s %v %d", name, way, fault, op, nth), func(t *testing.T) {
						t.Parallel()
						run(t, func(e env) {
							e.goes(way, opts, func() { lose(e.Server, op, nth) })
							e.empty()
							e.Release(e.Lock(e.lock(opts...)))
						})
					})
				}
			}
		}
	}
}

// opsOf lists what the server is asked for on a way.
func opsOf(t *testing.T, way string, opts []recipes.Option) (ops []zktest.Op) {
	run(t, func(e env) {
		e.goes(way, opts, func() {
			e.OnRequest(func(r zktest.Request) {
				if r.Op != zktest.OpPing {
					ops = append(ops, r.Op)
				}
			})
		})
		e.OnRequest(nil)
	})
	if len(ops) < 3 {
		t.Fatalf("only %v seen", ops)
	}
	return ops
}

// goes has one contender go its way; ready is called when its session stands.
func (e env) goes(way string, opts []recipes.Option, ready func()) {
	e.T.Helper()
	l := e.lock(opts...)
	if way == "at once" {
		ready()
		e.Release(e.Lock(l))
		return
	}
	held := e.Lock(e.lock(opts...))
	other := e.joined(e.lock(opts...)) // of a flow, it has the room
	if way == "changes the weight" {
		l = e.at(e.Open(), fair.Flow("a", 2))
	}
	ready()
	x := e.join(l)
	time.Sleep(2 * time.Second)
	if way == "leaves" {
		e.leave(x)
	}
	e.Release(held)
	g := e.Start(other.Wait).Grant(time.Minute)
	time.Sleep(2 * time.Second)
	e.Release(g)
	if way != "leaves" {
		e.Release(e.Start(x.Wait).Grant(time.Minute))
	}
}
