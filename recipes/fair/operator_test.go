package fair_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A scene is a lock that is held, and four tickets of a flow that has room for two of
// them in the lock's queue.
type scene struct {
	env
	locks   []*fair.Lock
	g       *recipes.Grant
	tickets []*fair.Ticket
}

func (e env) scene(opts ...recipes.Option) *scene {
	s := &scene{env: e}
	opts = with(opts, fair.Flow("a", 2))
	s.g = e.Lock(e.lock(fair.Flow("b", 1)))
	for range 4 {
		s.locks = append(s.locks, e.lock(opts...))
		s.tickets = append(s.tickets, e.joined(s.locks[len(s.locks)-1]))
	}
	e.waitLine(3)
	e.waitGate("a", 2)
	return s
}

// serve has all but the tickets given served, in their order, and then a newcomer.
func (s *scene) serve(without ...int) {
	s.T.Helper()
	s.Release(s.g)
	for i, x := range s.tickets {
		if !slices.Contains(without, i) {
			s.Release(s.Start(x.Wait).Grant(2 * time.Second))
		}
	}
	s.Release(s.Start(s.lock(fair.Flow("a", 2)).Lock).Grant(2 * time.Second))
	s.empty()
}

// Somebody removes the node of one that waits, in either queue: it is told so within a
// few seconds, and the others go on as if it had left.
func TestOperatorDeletesTheNodeOfATicket(t *testing.T) {
	for i, where := range []string{"first in line", "second in line", "first before the gate", "second before the gate"} {
		t.Run(where, func(t *testing.T) {
			run(t, func(e env) {
				s := e.scene()
				dir, names := locktest.Path, view(e, inLine)[1:]
				if i >= 2 {
					dir, names = flows+"/a/queue", view(e, func(v *zktest.View) []string { return before(v, "a") })
				}
				if err := e.Delete(dir + "/" + names[i%2]); err != nil {
					t.Fatal(err)
				}
				e.Start(s.tickets[i].Wait).Fails(6*time.Second, recipes.ErrNodeDeleted)
				for _, err := range s.tickets[i].Ahead(e.T.Context()) {
					if err == nil {
						t.Error("Ahead gives a number for a place that is lost")
					}
				}
				e.leave(s.tickets[i])
				s.serve(i)
			})
		})
	}
}

// The same at the moment when the first before the gate is let through.
func TestOperatorDeletesTheNodeOfOneThatPassesTheGate(t *testing.T) {
	for after := range 12 {
		run(t, func(e env) {
			s := e.scene()
			e.Delay(4 * time.Millisecond)
			e.Release(s.g)
			s.g = e.Start(s.tickets[0].Wait).Grant(time.Second)
			time.Sleep(time.Duration(after) * time.Millisecond)
			if names := view(e, func(v *zktest.View) []string { return before(v, "a") }); len(names) == 2 {
				e.Delete(flows + "/a/queue/" + names[0])
			}
			time.Sleep(10 * time.Second)
			e.Delay(0)
			if n := len(view(e, inLine)); n != 3 { // the holder and two that wait
				t.Errorf("after %d ms: in line: %q", after, view(e, inLine))
			}
			e.Release(s.g)
			e.Release(e.Start(s.tickets[1].Wait).Grant(time.Second))
			if g, _ := e.Start(s.tickets[2].Wait).Result(); g != nil {
				e.Release(g)
			}
			e.Release(e.Start(s.tickets[3].Wait).Grant(time.Second))
			e.empty()
		})
	}
}

// A marker that somebody removes lets one more through; nothing else happens.
func TestOperatorDeletesAMarker(t *testing.T) {
	run(t, func(e env) {
		s := e.scene()
		if err := e.Delete(flows + "/a/line/" + e.Children(flows + "/a/line")[0]); err != nil {
			t.Fatal(err)
		}
		e.waitLine(4)
		s.serve()
	})
}

// Nodes that are nobody's place don't count, in any of the directories.
func TestForeignNodesAmongTheFlows(t *testing.T) {
	run(t, func(e env) {
		for _, path := range []string{"/a/line/x", "/a/line/weight-", "/a/queue/y", "/a/z", "/%zz/queue/lock-0000000001", "/%41/queue", "/."} {
			e.Create(flows+path, []byte("not ours"))
		}
		s := e.scene()
		if cs, err := s.locks[0].Contenders(e.T.Context()); err != nil || len(cs) != 5 {
			t.Errorf("%v, %v", cs, err)
		}
		s.Release(s.g)
		for _, x := range s.tickets {
			e.Release(e.Start(x.Wait).Grant(time.Second))
		}
	})
}

// Somebody else's data is in the nodes of a flow and of the lock.
func TestForeignDataInTheNodes(t *testing.T) {
	for _, path := range []string{locktest.Path, flows, flows + "/a", flows + "/a/line", flows + "/a/queue"} {
		t.Run(path, func(t *testing.T) {
			run(t, func(e env) {
				s := e.scene(fair.ByHoldTime())
				if err := e.Set(path, []byte("not ours")); err != nil {
					t.Fatal(err)
				}
				e.Release(s.g)
				for _, x := range s.tickets {
					e.Release(e.Start(x.Wait).Grant(5 * time.Minute))
				}
				g, err := e.Start(s.locks[0].Lock).Result()
				if path == flows+"/a/queue" { // that is needed for the flow's weight
					e.Start(s.locks[0].Lock).Fails(time.Second, recipes.ErrConflict)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				e.Release(g)
				e.empty()
				if data, _ := e.Data(path); string(data) != "not ours" {
					t.Errorf("overwritten with %q", data)
				}
			})
		})
	}
}

// Somebody removes a directory with all that is in it, at any level: those in it are
// told, those who Lock queue again, and everybody is served who is still there.
func TestOperatorDeletesDirectories(t *testing.T) {
	for _, path := range []string{"/locks", locktest.Path, flows, flows + "/a", flows + "/a/line", flows + "/a/queue"} {
		for _, opts := range [][]recipes.Option{nil, {fair.ByHoldTime()}} {
			t.Run(path, func(t *testing.T) {
				run(t, func(e env) {
					s := e.scene(opts...)
					var locking []*locktest.Attempt
					for _, l := range s.locks {
						locking = append(locking, e.Start(l.Lock))
						synctest.Wait()
					}
					if err := e.DeleteAll(path); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
					if s.g.Err() == nil {
						e.Release(s.g)
					}
					pending := map[*locktest.Attempt]bool{}
					for _, x := range s.tickets {
						pending[e.Start(x.Wait)] = true
					}
					for _, a := range locking {
						pending[a] = true
					}
					began := time.Now()
					for len(pending) > 0 {
						for a := range pending {
							if a.Pending() {
								continue
							}
							delete(pending, a)
							if g, _ := a.Result(); g != nil {
								g.Release(e.T.Context())
							}
						}
						time.Sleep(100 * time.Millisecond)
						if time.Since(began) > 3*time.Minute {
							t.Fatalf("%d still wait; %s", len(pending), e.Tree())
						}
					}
					for _, a := range locking {
						if _, err := a.Result(); err != nil {
							t.Errorf("Lock: %v", err)
						}
					}
					for i, x := range s.tickets {
						e.leave(x)
						e.Start(x.Wait).Fails(now, fair.ErrSpent)
						e.Release(e.Lock(s.locks[i]))
					}
					e.empty()
				}, zktest.AllowOpenSessions())
			})
		}
	}
}
