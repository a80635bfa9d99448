package session_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// holdBlocking holds a new node with a callback that blocks for a minute.
func holdBlocking(t *testing.T, l *session.Life) (path string) {
	t.Helper()
	path = node(t, l, "/n-")
	if _, err := l.Hold(t.Context(), path, 0, nil, func(error, bool) { time.Sleep(time.Minute) }); err != nil {
		t.Fatal(err)
	}
	return path
}

// case 45
func TestCallbackBlocksWhenTheSessionIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		for range 20 {
			holdBlocking(t, l)
		}
		var others []*loss
		for range 20 {
			_, lost := holdNew(t, l)
			others = append(others, lost)
		}
		start := time.Now()
		srv.Expire(l.ID())
		for _, lost := range others {
			if lost.wait(t); time.Since(start) > soon {
				t.Fatalf("told after %v", time.Since(start))
			}
		}
		within(t, soon, "the end of the life", func() { <-l.Done() })
		within(t, soon, "the next life", func() { l = life(t, s) })
		_, lost := holdNew(t, l)
		time.Sleep(2 * timeout)
		if lost.yet() {
			t.Errorf("lost to %v", lost.cause)
		}
		within(t, soon, "Close", func() { s.Close() })
		time.Sleep(time.Minute)
	})
}

// case 45
func TestCallbackBlocksWhenANodeIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		_, lost := holdNew(t, l)
		srv.Delete(holdBlocking(t, l))
		time.Sleep(timeout)
		// Also where it is the heartbeat that finds out.
		path := holdBlocking(t, l)
		synctest.Wait()
		srv.StaleReads(l.ID(), true)
		srv.Delete(path)
		time.Sleep(timeout)
		if lost.yet() {
			t.Errorf("lost to %v", lost.cause)
		}
		within(t, soon, "Close", func() { s.Close() })
		time.Sleep(time.Minute)
	})
}

// case 45
func TestCallbackBlocksUnderStrictPolicy(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		cfg := config(srv)
		cfg.RevokeOnSuspend = true
		s, l := open(t, cfg)
		holdBlocking(t, l)
		_, lost := holdNew(t, l)
		start := time.Now()
		srv.Cut(l.ID())
		if lost.wait(t); time.Since(start) > soon {
			t.Errorf("told after %v", time.Since(start))
		}
		within(t, soon, "a request", func() { node(t, l, "/m-") })
		within(t, soon, "Close", func() { s.Close() })
		time.Sleep(time.Minute)
	})
}

// case 45
func TestCallbackCallsTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		path := node(t, l, "/n-")
		done := make(chan struct{})
		var h *session.Hold
		ready := make(chan struct{})
		h, err := l.Hold(t.Context(), path, 0, nil, func(error, bool) {
			defer close(done)
			<-ready
			h.Drop()
			if err := h.Verify(t.Context()); !errors.Is(err, session.ErrExpired) {
				t.Errorf("Verify: %v", err)
			}
			if next, err := s.Life(t.Context()); err != nil || next == l {
				t.Errorf("Life: %v, %v", next, err)
			}
			s.Close()
		})
		close(ready)
		if err != nil {
			t.Fatal(err)
		}
		srv.Expire(l.ID())
		<-done
	})
}

// case 40
func TestNodeRemovedByAnother(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		_, other := holdNew(t, l)
		path := node(t, l, "/n-")
		h, lost := hold(t, l, path)
		srv.Delete(path)
		within(t, 250*time.Millisecond, "the news", func() { lost.wait(t) })
		if lost.cause != session.ErrNodeGone || !lost.gone || h.Remaining() != 0 {
			t.Errorf("lost to %v (gone %v), %v left", lost.cause, lost.gone, h.Remaining())
		}
		if err := h.Verify(t.Context()); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("Verify: %v", err)
		}
		time.Sleep(2 * timeout)
		if other.yet() || l.Err() != nil {
			t.Errorf("another hold was lost to %v, the life to %v", other.cause, l.Err())
		}
	})
}

// The name comes again, for a node of the same session, as where the counter of a
// directory goes back.
func TestNodeIsReplacedByAnotherOfItsName(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second} { // before the node is watched, and after that
		for _, ask := range []bool{false, true} {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				_, l := open(t, config(srv))
				made, err := l.CreateSequential(t.Context(), "/n-", []byte("x"))
				if err != nil {
					t.Fatal(err)
				}
				lost := make(chan error, 1)
				h, err := l.Hold(t.Context(), made.Path, made.Stat.Czxid, nil, func(cause error, gone bool) {
					if !gone {
						t.Error("another's node is to be removed")
					}
					lost <- cause
				})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(after)
				if err := h.Verify(t.Context()); err != nil {
					t.Errorf("Verify: %v", err)
				}
				srv.Delete(made.Path)
				srv.CreateEphemeral(made.Path, nil, l.ID())
				if ask {
					if err := h.Verify(t.Context()); !errors.Is(err, zk.ErrNoNode) {
						t.Errorf("after %v, Verify: %v", after, err)
					}
				}
				select {
				case cause := <-lost:
					if cause != session.ErrNodeGone {
						t.Errorf("lost to %v", cause)
					}
				case <-time.After(time.Second):
					t.Errorf("after %v: the holder is not told", after)
				}
			})
		}
	}
}

// case 40: where the watch hears of nothing, the heartbeat finds out; and a node
// of the same name that belongs to another session is no better than none.
func TestNodeRemovedUnseen(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		s2, l2 := open(t, config(srv))
		path, path2 := node(t, l, "/n-"), node(t, l, "/n-")
		_, lost := hold(t, l, path)
		_, lost2 := hold(t, l, path2)
		synctest.Wait()
		srv.StaleReads(l.ID(), true)
		srv.Delete(path)
		srv.Delete(path2)
		srv.CreateEphemeral(path2, nil, l2.ID())
		within(t, timeout/4, "the news", func() { lost.wait(t); lost2.wait(t) })
		if lost.cause != session.ErrNodeGone || lost2.cause != session.ErrNodeGone {
			t.Errorf("lost to %v, %v", lost.cause, lost2.cause)
		}
		s2.Close()
	})
}

// Verify tells the holder before it returns.
func TestVerifyFindsTheNodeGone(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		path := node(t, l, "/n-")
		h, lost := hold(t, l, path)
		if err := h.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		srv.StaleReads(l.ID(), true)
		srv.Delete(path)
		if err := h.Verify(t.Context()); !errors.Is(err, zk.ErrNoNode) || !lost.yet() {
			t.Errorf("%v, told: %v", err, lost.yet())
		}
	})
}

func TestDroppedHoldIsToldNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		path := node(t, l, "/n-")
		h, lost := hold(t, l, path)
		h.Drop()
		h.Drop()
		if h.Remaining() != 0 {
			t.Errorf("%v left", h.Remaining())
		}
		srv.Delete(path)
		s.Close()
		if lost.yet() {
			t.Errorf("lost to %v", lost.cause)
		}
	})
}
