package session_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 51
func TestCloseGivesUpInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		srv.Delay(time.Millisecond)
		srv.Create("/d", nil)
		path, other := node(t, l, "/d/n-"), node(t, l, "/d/n-")
		farewell := []any{&zk.SetDataRequest{Path: "/d", Data: []byte("released"), Version: -1}}
		told := false
		if _, err := l.Hold(t.Context(), path, 0, farewell, func(cause error, gone bool) {
			told = true
			if cause != session.ErrClosed || !gone || !srv.Exists(path) {
				t.Errorf("lost to %v (gone %v) with the node there: %v", cause, gone, srv.Exists(path))
			}
		}); err != nil {
			t.Fatal(err)
		}
		within(t, 20*time.Millisecond, "Close", func() { s.Close() })
		if !told || srv.Exists(path) || srv.Exists(other) || len(srv.Sessions()) != 0 {
			t.Errorf("told: %v, left:\n%s", told, srv.Tree())
		}
		if data, _ := srv.Data("/d"); string(data) != "released" {
			t.Errorf("data %q", data)
		}
	})
}

// case 51: on a connection that swallows everything it takes a second.
func TestCloseInABlackHole(t *testing.T) {
	for _, d := range []zktest.Direction{zktest.Both, zktest.ToServer, zktest.ToClient} {
		for _, wait := range []time.Duration{0, timeout / 2, 7 * timeout / 10, 8 * timeout / 10} {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				s, l := open(t, config(srv))
				_, lost := holdNew(t, l)
				srv.BlackHole(0, d)
				time.Sleep(wait)
				start := time.Now()
				within(t, 1200*time.Millisecond, "Close", func() { s.Close() })
				if !lost.yet() || lost.at.After(start) {
					t.Errorf("told: %v, at %v", lost.yet(), lost.at.Sub(start))
				}
			}, zktest.AllowOpenSessions())
		}
	}
}

// case 51
func TestCloseDuringAnOutage(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Second, 2 * timeout} {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			s, l := open(t, config(srv))
			holdNew(t, l)
			srv.Refuse(true)
			srv.Cut(0)
			time.Sleep(wait)
			within(t, 1200*time.Millisecond, "Close", func() { s.Close() })
		}, zktest.AllowOpenSessions())
	}
}

func TestCloseTwiceAndAtTheSameTime(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		srv.Delay(10 * time.Millisecond)
		holdNew(t, l)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := s.Close(); err != nil || len(srv.Sessions()) != 0 || s.State() != session.Closed {
					t.Errorf("%v: sessions %v, state %v", err, srv.Sessions(), s.State())
				}
			})
		}
		wg.Wait()
		within(t, 0, "Close once more", func() { s.Close() })
		if l.Err() != session.ErrClosed {
			t.Error(l.Err())
		}
		<-l.Done()
		if _, err := s.Life(t.Context()); !errors.Is(err, session.ErrClosed) {
			t.Error(err)
		}
		if s.ID() != l.ID() || s.Timeout() != timeout {
			t.Errorf("id %#x, timeout %v", s.ID(), s.Timeout())
		}
	})
}

// case 51, case 18: calls that wait return when Close begins.
func TestCloseReleasesThoseWhoWait(t *testing.T) {
	for call := range calls(nil, nil, nil) {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			s, l := open(t, config(srv))
			h, _ := holdNew(t, l)
			if call == "Hold" {
				h.Drop()
				time.Sleep(2 * timeout)
			}
			srv.Delay(time.Minute)
			start := time.Now()
			time.AfterFunc(time.Second, func() { s.Close() })
			err := calls(s, l, h)[call](context.Background())
			if took := time.Since(start) - time.Second; !errors.Is(err, session.ErrClosed) || took > 200*time.Millisecond {
				t.Errorf("%s: %v %v after Close", call, err, took)
			}
			s.Close()
		}, zktest.AllowOpenSessions())
	}
}

// case 18: and so they do when the session is lost.
func TestLossReleasesThoseWhoWait(t *testing.T) {
	for call := range calls(nil, nil, nil) {
		if call == "Hold" {
			continue // it waits in Prove
		}
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			s, l := open(t, config(srv))
			h, _ := holdNew(t, l)
			_, lost := holdNew(t, l)
			srv.Refuse(true)
			srv.Cut(0)
			time.Sleep(soon)
			err := calls(s, l, h)[call](context.Background())
			if lost.wait(t); l.Err() == nil || !errors.Is(err, l.Err()) {
				t.Errorf("%s: %v: the life ended with %v", call, err, l.Err())
			} else if time.Since(lost.at) != 0 {
				t.Errorf("%s returned %v after the loss", call, time.Since(lost.at))
			}
		}, zktest.AllowOpenSessions())
	}
}

// case 18, case 48: the session goes on under a new life.
func TestSessionAfterALoss(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		srv.Expire(l.ID())
		<-l.Done()
		next := life(t, s)
		if next == l || next.Err() != nil || s.State() != session.Connected {
			t.Errorf("%v, %v, %v", next == l, next.Err(), s.State())
		}
		_, lost := holdNew(t, next)
		time.Sleep(3 * timeout)
		if lost.yet() {
			t.Error(lost.cause)
		}
	})
}
