package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/inspect"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

const every = time.Second

// A watcher writes down what it sees.
type watcher struct {
	cancel context.CancelFunc
	ended  chan struct{}

	mu   sync.Mutex
	seen []string
	err  error
}

func watch(e *locktest.Env, o *inspect.Observer) *watcher {
	ctx, cancel := context.WithCancel(e.T.Context())
	w := &watcher{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for q, err := range o.Watch(ctx, every) {
			w.mu.Lock()
			if err != nil {
				w.err = err
			} else {
				w.seen = append(w.seen, line(q))
			}
			w.mu.Unlock()
		}
	}()
	return w
}

// take returns what was seen since the last time, when nothing more happens without
// time going on.
func (w *watcher) take() (seen []string) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, w.seen = w.seen, nil
	return seen
}

func (w *watcher) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := w.take(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("seen %q, want %q", got, want)
	}
}

// expectLast expects that something was seen, and this in the end.
func (w *watcher) expectLast(t *testing.T, want string) {
	t.Helper()
	time.Sleep(2 * every) // it may be about to look again
	if got := w.take(); len(got) == 0 || got[len(got)-1] != want {
		t.Errorf("seen %q, want %q in the end", got, want)
	}
}

func (w *watcher) stop(t *testing.T) {
	t.Helper()
	w.cancel()
	<-w.ended
	if w.err != nil {
		t.Error(w.err)
	}
}

func TestWatchSeesEachChange(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := &site{Env: e}
		w := watch(e, observer(e, e.Open()))
		w.expect(t, "") // there is not even the path
		a := s.queue(e.New(recipes.Owner("a")).Lock)
		w.expectLast(t, "mutex a=0")
		b := s.queue(e.New(recipes.Owner("b")).Lock)
		w.expect(t, "mutex a=0 b=1") // at once: the last look was long ago
		time.Sleep(time.Hour)
		w.expect(t)
		e.Release(a.Grant(time.Minute))
		w.expect(t, "mutex b=0")
		time.Sleep(every)
		e.DeleteAll(locktest.Path)
		w.expectLast(t, "")
		b.Grant(time.Minute)
		c := e.Start(e.New(recipes.Owner("c")).Lock) // the path is made anew
		w.expectLast(t, "mutex c=0")
		s.finish(c)
		w.expectLast(t, "mutex")
		time.Sleep(5 * time.Minute)
		if e.Exists(locktest.Path) {
			t.Error("the observer keeps the path alive")
		}
		w.expectLast(t, "")
		w.stop(t)
		w.expect(t)
	})
}

// An admission shows in the nodes' data: no child comes or goes.
func TestWatchSeesAdmissions(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := &site{Env: e}
		three := s.sem("a")
		a := s.queue(three.Acquire)
		b := s.queue(func(ctx context.Context) (*recipes.Grant, error) { return s.sem("b").AcquireN(ctx, 3) })
		w := watch(e, observer(e, e.Open()))
		w.expect(t, "semaphore(3) a=0/lease/1[0] b=1/lease/3[]")
		time.Sleep(every)
		if err := three.Resize(e.T.Context(), 4); err != nil {
			t.Fatal(err)
		}
		w.expectLast(t, "semaphore(4) a=0/lease/1[0] b=0/lease/3[1 2 3]")
		s.finish(a, b)
		w.expectLast(t, "semaphore(4)")
		w.stop(t)
	})
}

// Those who wait before a gate come and go below another node, which comes and goes
// itself.
func TestWatchSeesFlows(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := &site{Env: e}
		w := watch(e, observer(e, e.Open()))
		w.expect(t, "")
		holder := s.queue(e.New(recipes.Owner("m")).Lock)
		w.expectLast(t, "mutex m=0")
		var as []*locktest.Attempt
		want := "fair m=0"
		for i := range 3 {
			as = append(as, e.Start(s.fair(fmt.Sprint("a", i), "a", 1).Lock))
			want += fmt.Sprintf(" a%d=%d@a", i, i+1)
			w.expectLast(t, want)
		}
		as[2].Cancel() // one that waits before the gate
		w.expectLast(t, "fair m=0 a0=1@a a1=2@a")
		as = append(as[:2], e.Start(s.fair("b0", "b", 1).Lock)) // a flow that was not there
		w.expectLast(t, "fair m=0 a0=1@a b0=2@b a1=3@a")
		s.finish(holder, as[0], as[2], as[1])
		w.expectLast(t, "fair")

		time.Sleep(10 * time.Minute) // all that is not used is removed
		if left := e.Children("/locks"); len(left) > 0 {
			t.Errorf("the observer keeps %q alive", left)
		}
		w.expectLast(t, "")
		// Two watches wait for the path and the flows to come; none is left of the rest.
		if n := e.Watches(); n > 2 {
			t.Errorf("%d watches, want 2", n)
		}
		a := e.Start(s.fair("a", "a", 1).Lock)
		w.expectLast(t, "fair a=0@a")
		b := e.Start(s.fair("b", "a", 1).Lock)
		w.expectLast(t, "fair a=0@a b=1@a")
		c := e.Start(s.fair("c", "a", 1).Lock)
		w.expectLast(t, "fair a=0@a b=1@a c=2@a")
		s.finish(a, b, c)
		w.stop(t)
	})
}

// A gate's queue that is removed, while its flow's node is still there, is seen when
// it comes again.
func TestWatchSeesAGateComeBack(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := &site{Env: e}
		l := s.fair("a", "a", 1)
		start := func() *locktest.Attempt {
			defer synctest.Wait()
			return e.Start(l.Lock)
		}
		a, b, c := start(), start(), start()
		w := watch(e, observer(e, e.Open()))
		w.expect(t, "fair a=0@a a=1@a a=2@a")
		c.Cancel()
		w.expectLast(t, "fair a=0@a a=1@a")
		if err := e.Delete(locktest.Path + ".flows/a/queue"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * every)
		w.expect(t)
		c = start()
		w.expectLast(t, "fair a=0@a a=1@a a=2@a")
		s.finish(a, b, c)
		w.stop(t)
	})
}

// However much happens, it looks once each every, and what it sees in the end is true.
func TestWatchBounded(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		o := observer(e, e.Open())
		m := e.New(recipes.Owner("a"))
		w := watch(e, o)
		w.expect(t, "")
		began := time.Now()
		for time.Since(began) < 20*every {
			g := e.Lock(m)
			time.Sleep(every / 100)
			e.Release(g)
		}
		if n := len(w.take()); n > 21 || n < 2 {
			t.Errorf("%d elements in 20 times every", n)
		}
		g := e.Lock(m)
		w.expectLast(t, "mutex a=0")
		w.stop(t)
		e.Release(g)
	})
}

// It costs the contenders nothing: what they send and get, and the events, are the same
// with an observer, who sends nothing that writes.
func TestWatchCostsContendersNothing(t *testing.T) {
	const rounds = 20
	run := func(watched bool) (requests int, events int64, writes int) {
		locktest.Run(t, func(e *locktest.Env) {
			s := e.Open()
			var w *watcher
			if watched {
				w = watch(e, observer(e, s))
				w.take()
			}
			a, b := e.New(recipes.Owner("a")), e.New(recipes.Owner("b"))
			synctest.Wait()
			e.ResetCounts()
			e.OnRequest(func(r zktest.Request) {
				switch {
				case r.Op == zktest.OpPing:
				case r.Session != s.ID():
					requests++
				case r.Op != zktest.OpGetData && r.Op != zktest.OpGetChildren2 && r.Op != zktest.OpExists && r.Op != zktest.OpGetChildren:
					writes++
				}
			})
			for range rounds {
				g := e.Lock(a)
				next := e.Start(b.Lock)
				e.Queued(2)
				e.Release(g)
				e.Release(next.Grant(time.Second))
			}
			synctest.Wait()
			events = e.Requests().Events
			e.OnRequest(nil)
			if watched {
				w.stop(t)
			}
		})
		return requests, events, writes
	}
	alone, eventsAlone, _ := run(false)
	watched, events, writes := run(true)
	if watched != alone || writes > 0 {
		t.Errorf("contenders sent %d requests, and %d when watched; the observer's writes: %d", alone, watched, writes)
	}
	// No time goes by: there is one look, which arms two watches on the path.
	if events-eventsAlone > 2 {
		t.Errorf("%d events, and %d when watched", eventsAlone, events)
	}
}

// It goes on over lost sessions and connections, and sees what it missed.
func TestWatchLosesItsSession(t *testing.T) {
	for name, lose := range map[string]func(e *locktest.Env, id int64){
		"expired":      func(e *locktest.Env, id int64) { e.Expire(id) },
		"disconnected": func(e *locktest.Env, id int64) { e.Cut(id) },
		"hole":         func(e *locktest.Env, id int64) { e.BlackHole(id, zktest.Both); time.Sleep(time.Minute); e.Heal() },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) {
				s := &site{Env: e}
				mine := e.Open()
				w := watch(e, observer(e, mine))
				w.expect(t, "")
				a := s.queue(e.New(recipes.Owner("a")).Lock)
				w.expectLast(t, "mutex a=0")
				lose(e, mine.ID())
				time.Sleep(time.Minute)
				w.expect(t) // nothing has changed
				lose(e, mine.ID())
				b := s.queue(e.New(recipes.Owner("b")).Lock)
				time.Sleep(time.Minute)
				w.expectLast(t, "mutex a=0 b=1")
				s.finish(a, b)
				w.expectLast(t, "mutex")
				w.stop(t)
			})
		})
	}
}

// The end of the session is an error, and the last element.
func TestWatchSessionClosed(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		w := watch(e, observer(e, s))
		w.expect(t, "")
		s.Close()
		<-w.ended
		if !errors.Is(w.err, recipes.ErrSessionClosed) {
			t.Error(w.err)
		}
	})
}

// In a directory with somebody else's data, only those in line say what it is: when
// they have gone, that is known.
func TestWatchForeignDirectory(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		e.Create("/locks", nil)
		e.Create(locktest.Path, []byte("10.0.0.1"))
		s := &site{Env: e}
		a := s.queue(e.New(recipes.Owner("a")).Lock)
		w := watch(e, observer(e, e.Open()))
		w.expect(t, "mutex a=0")
		s.finish(a)
		w.expectLast(t, "mutex")
		w.stop(t)
	})
}

// A look that meets a lost session is made again with the next one.
func TestLookLosesItsSession(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := &site{Env: e}
		a := s.queue(e.New(recipes.Owner("a")).Lock)
		mine := e.Open(func(c *session.Config) { c.Timeout = 4 * time.Second })
		o := observer(e, mine)
		e.BlackHole(mine.ID(), zktest.ToClient)
		time.AfterFunc(time.Minute, e.Heal)
		if got := line(look(e, o)); got != "mutex a=0" {
			t.Error(got)
		}
		s.finish(a)
	})
}

// The name of a flow with characters that a path can't have is the name, not the node's.
func TestWatchFlowNames(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := &site{Env: e}
		for _, name := range []string{"..", "a/b", "ü x"} {
			l, err := fair.New(e.Open(), locktest.Path, recipes.Owner("o"), fair.Flow(name, 1))
			g := e.Lock(must(s, l, err))
			if got := line(look(e, observer(e, e.Open()))); !strings.HasSuffix(got, "@"+name) {
				t.Error(got)
			}
			e.Release(g)
		}
	})
}

// Where nothing was, somebody comes while we look, with a lock of a kind that could not
// be known: that is for the next look.
func TestWatchWhileAPathIsMade(t *testing.T) {
	for _, c := range []struct{ child, want string }{
		{"x__WRIT__0000000000", "rwlock =0/write"},
		{"x-lock-0000000000", "mutex =0"},
	} {
		locktest.Run(t, func(e *locktest.Env) {
			e.Create("/locks", nil)
			e.OnRequest(func(r zktest.Request) {
				if strings.HasSuffix(r.Path, ".flows") && !e.Exists(locktest.Path) {
					e.Create(locktest.Path, nil)
					e.Create(locktest.Path+"/"+c.child, nil)
				}
			})
			w := watch(e, observer(e, e.Open()))
			w.expect(t, "")
			w.expectLast(t, c.want)
			w.stop(t)
		})
	}
}
