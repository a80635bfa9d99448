package session_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// What is held is kept for hours, with one small request every sixth of the
// timeout, and what is not held costs nothing.
func TestHeartbeatOnlyWhileHolding(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		path := node(t, l, "/n-")
		srv.ResetCounts()
		time.Sleep(time.Hour)
		if n := srv.Requests().Total(); n != 0 {
			t.Errorf("%d requests with nothing held", n)
		}
		h, lost := hold(t, l, path)
		for range 360 {
			time.Sleep(timeout)
			if left := h.Remaining(); left < timeout/3 {
				t.Fatalf("%v left", left)
			}
		}
		if n := srv.Requests().Of(zktest.OpMulti); n < 6*360 || n > 6*360+10 || lost.yet() {
			t.Errorf("%d heartbeats in an hour", n)
		}
		h.Drop()
		time.Sleep(timeout)
		srv.ResetCounts()
		time.Sleep(time.Hour)
		if n := srv.Requests().Total(); n != 0 {
			t.Errorf("%d requests after the hold was dropped", n)
		}
	})
}

// With many holds each node is checked in its turn.
func TestHeartbeatChecksEveryNode(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		var mu sync.Mutex
		lost := make(map[string]bool)
		var paths []string
		for i := range 500 {
			path := node(t, l, fmt.Sprint("/n-", i, "-"))
			paths = append(paths, path)
			if _, err := l.Hold(t.Context(), path, 0, nil, func(cause error, gone bool) {
				mu.Lock()
				defer mu.Unlock()
				if cause == session.ErrClosed {
					return // the end of the test
				}
				if lost[path] || cause != session.ErrNodeGone || !gone {
					t.Errorf("%s was lost to %v (gone %v)", path, cause, gone)
				}
				lost[path] = true
			}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		srv.StaleReads(l.ID(), true) // the watches hear of nothing
		srv.Delete(paths[3])
		srv.Delete(paths[490])
		time.Sleep(timeout)
		mu.Lock()
		defer mu.Unlock()
		if len(lost) != 2 || !lost[paths[3]] || !lost[paths[490]] {
			t.Errorf("lost: %v", lost)
		}
	})
}

// A heartbeat that is refused is not asked for without a pause.
func TestHeartbeatRefused(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		_, lost := holdNew(t, l)
		for i := range 10_000 {
			srv.FailRequest(zktest.OpMulti, i+1, int32(zktest.NoAuth))
		}
		srv.ResetCounts()
		if lost.wait(t); lost.cause != session.ErrTrustOver {
			t.Errorf("lost to %v", lost.cause)
		}
		if n := srv.Requests().Of(zktest.OpMulti); n > 30 {
			t.Errorf("asked %d times", n)
		}
	})
}

// case 2, for heartbeats: lost answers cost nothing as long as some arrive.
func TestRepliesOfHeartbeatsLost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		_, lost := holdNew(t, l)
		for range 100 {
			srv.LoseReply(zktest.OpMulti, 1)
			time.Sleep(timeout / 2)
			srv.LoseRequest(zktest.OpMulti, 1)
			time.Sleep(timeout / 2)
		}
		if lost.yet() {
			t.Errorf("lost to %v", lost.cause)
		}
	})
}
