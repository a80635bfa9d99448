package election_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// succession resigns one term after the other and returns who led.
func succession(e *locktest.Env, w *locktest.Witness, cs map[string]*campaign) (order []string) {
	e.T.Helper()
	for len(cs) > 0 {
		time.Sleep(time.Second)
		led := ""
		for name, c := range cs {
			if !c.Pending() {
				if led != "" {
					e.T.Fatalf("%s and %s lead", led, name)
				}
				led = name
			}
		}
		if led == "" {
			e.T.Fatalf("nobody leads; in line: %q", e.Children(locktest.Path))
		}
		term := cs[led].Term(time.Second)
		w.Saw(e.T, term.Grant)
		order = append(order, led)
		delete(cs, led)
		resign(e, term)
	}
	return order
}

func TestSuccessorIsNamed(t *testing.T) {
	for heir, want := range map[int]string{0: "abcde", 1: "bcdea", 2: "cdeab", 4: "eabcd"} {
		for _, opts := range [][]recipes.Option{nil, {recipes.FailOnLoss()}, {recipes.LockDelay(time.Hour)}} {
			locktest.Run(t, func(e *locktest.Env) {
				var w locktest.Witness
				first := elected(e, fresh(e, opts...), "first")
				w.Saw(t, first.Grant)
				cs := map[string]*campaign{}
				for i, c := range inLine(e, 5, opts...) {
					cs[string("abcde"[i])] = c
				}
				if err := first.ResignTo(e.T.Context(), ids(e, fresh(e))[1+heir]); err != nil {
					t.Fatal(err)
				}
				// Those behind the named one stand before those who gave way.
				got := ""
				for _, led := range succession(e, &w, cs) {
					got += led
				}
				// In which order those queue again is not promised.
				again := []byte(got[5-heir:])
				slices.Sort(again)
				if got = got[:5-heir] + string(again); got != want {
					t.Errorf("named %d: led in the order %q, want %q", heir, got, want)
				}
				e.Empty()
			})
		}
	}
}

// The named one is not there (any more): the next in line leads, at once.
func TestNamedSuccessorIsGone(t *testing.T) {
	for name, gone := range map[string]func(e *locktest.Env, cs []*campaign) (id string){
		"gave up": func(e *locktest.Env, cs []*campaign) string {
			id := ids(e, fresh(e))[3]
			cs[2].Cancel()
			cs[2].Fails(time.Second, context.Canceled)
			e.Queued(3)
			return id
		},
		"never was":  func(e *locktest.Env, cs []*campaign) string { return "1f-candidate-0000000003" },
		"was before": func(e *locktest.Env, cs []*campaign) string { return ids(e, fresh(e))[0] },
		"node deleted": func(e *locktest.Env, cs []*campaign) string {
			id := ids(e, fresh(e))[3]
			e.Delete(locktest.Path + "/" + id)
			return id
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) {
				var w locktest.Witness
				first := elected(e, fresh(e), "first")
				w.Saw(t, first.Grant)
				cs := inLine(e, 3)
				id := gone(e, cs)
				inLine := ids(e, fresh(e))[1:]
				if err := first.ResignTo(e.T.Context(), id); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				for i, c := range cs[:2] {
					term := c.Term(time.Second)
					w.Saw(t, term.Grant)
					if l := leader(e, fresh(e)); l.ID != inLine[i] {
						t.Errorf("%s leads, %s was in line: gave way to nobody", l.ID, inLine[i])
					}
					if i == 0 && time.Since(start) > 0 {
						t.Errorf("led after %v", time.Since(start))
					}
					resign(e, term)
				}
				cs[2].Cancel()
				if g, err := cs[2].Result(); err == nil {
					e.Release(g)
				}
				e.Empty()
			})
		})
	}
}

// The named one dies while others give way to it: nobody is lost, and nobody waits
// for longer than its session lasts.
func TestNamedSuccessorDiesWhileOthersGiveWay(t *testing.T) {
	for step := 1; step <= 12; step++ {
		locktest.Run(t, func(e *locktest.Env) {
			var w locktest.Witness
			first := elected(e, fresh(e), "first")
			w.Saw(t, first.Grant)
			cs := map[string]*campaign{}
			for i, c := range inLine(e, 3) {
				cs[string("abc"[i])] = c
			}
			s := e.Open()
			heir := start(e, on(e, s, recipes.FailOnLoss()), "heir")
			e.Queued(5)
			id := ids(e, fresh(e))[4]
			var n atomic.Int32
			e.OnRequest(func(r zktest.Request) {
				if r.Op != zktest.OpPing {
					if int(n.Add(1)) == step {
						go e.Expire(s.ID())
					}
				}
			})
			if err := first.ResignTo(e.T.Context(), id); err != nil {
				t.Fatal(err)
			}
			g, err := heir.Result()
			time.Sleep(time.Second)
			e.OnRequest(nil)
			if err == nil {
				g.Release(e.T.Context()) // it may be lost
			} else if !errors.Is(err, recipes.ErrSessionLost) {
				t.Error(err)
			}
			if order := succession(e, &w, cs); len(order) != 3 {
				t.Errorf("led: %q", order)
			}
			e.Empty()
		})
	}
}

// The wish is for once: later the order is that of arrival.
func TestWishIsForOnce(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		first := elected(e, fresh(e), "first")
		cs := inLine(e, 3)
		if err := first.ResignTo(e.T.Context(), ids(e, fresh(e))[3]); err != nil {
			t.Fatal(err)
		}
		heir := cs[2].Term(time.Second)
		// It dies, so that the record still names it.
		e.Delete(locktest.Path + "/" + leader(e, fresh(e)).ID)
		<-heir.Done()
		last := start(e, fresh(e), "last")
		var w locktest.Witness
		order := succession(e, &w, map[string]*campaign{"a": cs[0], "b": cs[1], "last": last})
		slices.Sort(order[:2]) // that order is not promised
		if fmt.Sprint(order) != "[a b last]" {
			t.Errorf("led: %q", order)
		}
		e.Empty()
	})
}

// A term that was lost names nobody.
func TestResignedToAfterALoss(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		first := elected(e, fresh(e), "first")
		cs := inLine(e, 2)
		in := ids(e, fresh(e))
		e.Delete(locktest.Path + "/" + in[0])
		<-first.Done()
		if err := first.ResignTo(e.T.Context(), in[2]); !errors.Is(err, recipes.ErrNodeDeleted) {
			t.Error(err)
		}
		resign(e, cs[0].Term(time.Second))
		resign(e, cs[1].Term(time.Second))
	})
}

// The one who gives way loses its answers.
func TestRepliesLostWhileGivingWay(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, lose := range []func(*zktest.Server, zktest.Op, int){(*zktest.Server).LoseReply, (*zktest.Server).LoseRequest} {
			locktest.Run(t, func(e *locktest.Env) {
				var w locktest.Witness
				first := elected(e, fresh(e), "first")
				w.Saw(t, first.Grant)
				cs := inLine(e, 2)
				id := ids(e, fresh(e))[2]
				for i := range n {
					lose(e.Server, zktest.OpMulti, i+2) // the first is that of the resignation
				}
				if err := first.ResignTo(e.T.Context(), id); err != nil {
					t.Fatal(err)
				}
				if order := succession(e, &w, map[string]*campaign{"a": cs[0], "b": cs[1]}); order[0] != "b" {
					t.Errorf("led: %q", order)
				}
				e.Empty()
			})
		}
	}
}
