package session_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func watch(t *testing.T, l *session.Life, path string) *session.Watch {
	t.Helper()
	w, err := l.Watch(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func fired(w *session.Watch) bool {
	synctest.Wait()
	select {
	case <-w.Fired:
		return true
	default:
		return false
	}
}

// case 22
func TestAbandonedWatchesCostNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		path := node(t, l, "/n-")
		watch(t, l, path)
		srv.ResetCounts()
		heap := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before, goroutines := heap(), runtime.NumGoroutine()
		for range 100_000 {
			watch(t, l, path)
		}
		if n := srv.Watches(); n != 1 {
			t.Errorf("%d watches on the server", n)
		}
		if n := srv.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
		if grown := int64(heap()) - int64(before); grown > 1<<20 {
			t.Errorf("the heap grew by %d bytes", grown)
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
	})
}

// case 22
func TestWatchersOfOnePathShareOneQuestion(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		if err := srv.Create("/p", []byte("x")); err != nil {
			t.Fatal(err)
		}
		srv.ResetCounts()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				w := watch(t, l, "/p")
				if string(w.Data) == "x" {
					<-w.Fired
					w = watch(t, l, "/p")
				}
				if string(w.Data) != "y" {
					t.Errorf("read %q", w.Data)
				}
			})
		}
		synctest.Wait()
		srv.Set("/p", []byte("y"))
		wg.Wait()
		if c := srv.Requests(); c.Of(zktest.OpGetData) != 2 || c.Events != 1 {
			t.Errorf("%d questions, %d events", c.Of(zktest.OpGetData), c.Events)
		}
	})
}

// case 15
func TestWatchOfMissingNodeLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		for i := range 1000 {
			if _, err := l.Watch(t.Context(), fmt.Sprint("/gone-", i)); !errors.Is(err, zk.ErrNoNode) {
				t.Fatal(err)
			}
		}
		if n := srv.Watches(); n != 0 {
			t.Errorf("%d watches on the server", n)
		}
	})
}

// case 23: under the race detector this also shows that the client never sets
// its watches anew by itself, which it does with a data race.
func TestEventsMissedDuringCuts(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		const others = 20
		for i := range others {
			srv.Create(fmt.Sprint("/still-", i), nil)
		}
		for round := range 60 {
			path := fmt.Sprint("/p-", round)
			srv.Create(path, nil)
			w := watch(t, l, path)
			for i := range others {
				watch(t, l, fmt.Sprint("/still-", i))
			}
			switch round % 3 {
			case 0: // while down
				srv.Refuse(true)
				srv.Cut(l.ID())
				srv.Delete(path)
				srv.Refuse(false)
			case 1: // the event was under way
				srv.Delete(path)
				srv.Cut(l.ID())
			case 2: // at any moment of the reconnection
				go srv.Delete(path)
				srv.Cut(l.ID())
			}
			select {
			case <-w.Fired:
			case <-time.After(time.Second):
				t.Fatalf("round %d: not woken", round)
			}
			for {
				w, err := l.Watch(t.Context(), path)
				if errors.Is(err, zk.ErrNoNode) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				<-w.Fired
			}
		}
		if n := srv.Requests().Of(zktest.OpSetWatches); n != 0 {
			t.Errorf("the client set its watches anew %d times", n)
		}
		if n := srv.Watches(); n > others {
			t.Errorf("%d watches on the server", n)
		}
	})
}

// case 23: questions that wait for the connection are the first on a new one, and
// must not meet the client's look at the watches that it has.
func TestQuestionsRightAfterAReconnection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		srv.Create("/p", nil)
		for range 100 {
			w := watch(t, l, "/p")
			srv.Cut(l.ID())
			<-w.Fired
		}
		watch(t, l, "/p") // connected again
		if n := srv.Requests().Of(zktest.OpSetWatches); n != 0 {
			t.Errorf("the client set its watches anew %d times", n)
		}
	})
}

// A cut while the question is under way: it is asked again.
func TestReplyOfWatchLost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		srv.Create("/p", nil)
		srv.LoseReply(zktest.OpGetData, 1)
		w := watch(t, l, "/p")
		if fired(w) {
			t.Error("fired by the loss of an older connection")
		}
		srv.Set("/p", []byte("y"))
		if !fired(w) {
			t.Error("not fired by a change")
		}
	})
}

// case 18: whoever waits is released when the life ends, and nobody starts to
// wait for what can't come any more.
func TestWatchesOfALifeThatEnds(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		srv.Create("/p", nil)
		w := watch(t, l, "/p")
		srv.Expire(l.ID())
		<-l.Done()
		if _, err := l.Watch(context.Background(), "/p"); !errors.Is(err, session.ErrExpired) {
			t.Errorf("a watch of a life that is over: %v", err)
		}
		if !fired(w) {
			t.Error("a watch outlived its session")
		}
	})
}

// Many who look at once at a node that has just gone share two questions: those
// who came while the first was under way need an answer that is not older than
// they are, and that is one for all of them.
func TestManyLookAtANodeThatHasGone(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		srv.Delay(time.Millisecond) // long enough for all to have asked before the answer comes
		srv.ResetCounts()
		arrived, release := srv.HoldRequest(zktest.OpGetData, 1)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := l.Watch(t.Context(), "/gone"); !errors.Is(err, zk.ErrNoNode) {
					t.Error(err)
				}
			})
		}
		<-arrived
		synctest.Wait()
		srv.Delay(time.Millisecond) // all of them look again before the second answer is there
		release()
		wg.Wait()
		if n := srv.Requests().Of(zktest.OpGetData); n > 2 {
			t.Errorf("%d requests", n)
		}
	})
}
