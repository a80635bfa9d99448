package session_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// history collects the states of a session until it is closed.
func history(s *session.Session) (read func() []session.State) {
	var seen []session.State
	done := make(chan struct{})
	go func() {
		defer close(done)
		for st := range s.States(context.Background()) {
			seen = append(seen, st)
		}
	}()
	synctest.Wait()
	return func() []session.State {
		<-done
		return seen
	}
}

func outage(srv *zktest.Server, id int64, d time.Duration) {
	srv.Refuse(true)
	srv.Cut(id)
	time.Sleep(d)
	srv.Refuse(false)
}

// case 41
func TestShortCutSuspendsAndRevokesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		s, l := open(t, config(srv))
		h, lost := holdNew(t, l)
		read := history(s)
		for range 5 {
			outage(srv, l.ID(), 3*timeout/10)
			time.Sleep(timeout)
		}
		if lost.yet() || h.Remaining() <= 0 {
			t.Errorf("lost to a short cut: %v", lost.cause)
		}
		if l.Err() != nil || s.ID() != l.ID() || srv.Sessions()[0].Ephemerals != 1 {
			t.Errorf("the session or its node did not survive: %v", l.Err())
		}
		s.Close()
		want := []session.State{session.Connected}
		for range 5 {
			want = append(want, session.Suspended, session.Connected)
		}
		want = append(want, session.Closed)
		if got := read(); !slices.Equal(got, want) {
			t.Errorf("states %v, want %v", got, want)
		}
	})
}

// case 41
func TestStrictPolicyRevokesAtSuspension(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		cfg := config(srv)
		cfg.RevokeOnSuspend = true
		s, l := open(t, cfg)
		_, lost := holdNew(t, l)
		go func() {
			for st := range s.States(t.Context()) {
				if st == session.Suspended && !lost.yet() {
					t.Error("suspended before the hold was told")
				}
			}
		}()
		start := time.Now()
		outage(srv, l.ID(), time.Second)
		if lost.wait(t); lost.cause != session.ErrSuspended || lost.gone || lost.at.Sub(start) > soon {
			t.Errorf("lost to %v (gone %v) after %v", lost.cause, lost.gone, lost.at.Sub(start))
		}
		time.Sleep(time.Second)
		if l.Err() != nil {
			t.Errorf("the session is over: %v", l.Err())
		}
	})
}

// case 41: whoever comes while the connection is down waits for it.
func TestHoldWhileSuspendedUnderStrictPolicy(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		cfg := config(srv)
		cfg.RevokeOnSuspend = true
		_, l := open(t, cfg)
		path := node(t, l, "/n-")
		srv.Refuse(true)
		srv.Cut(0)
		time.Sleep(time.Second)
		ctx := after(t, time.Second)
		start := time.Now()
		_, err := l.Hold(ctx, path, 0, nil, func(error, bool) {})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.AfterFunc(time.Second, func() { srv.Refuse(false) })
		_, lost := hold(t, l, path)
		time.Sleep(timeout)
		if lost.yet() {
			t.Errorf("lost to %v", lost.cause)
		}
	})
}

// A connection that comes back late leaves the trust window over, though
// nothing was held and the session lives: one request opens it again.
func TestHoldRightAfterLongCut(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		path := node(t, l, "/n-")
		time.Sleep(2 * timeout)
		outage(srv, l.ID(), 7*timeout/10)
		if l.Remaining() > 0 {
			t.Error("trusted for a timeout without news")
		}
		srv.ResetCounts()
		h, lost := hold(t, l, path)
		if n := srv.Requests().Of(zktest.OpMulti); n != 1 {
			t.Errorf("%d proofs: want one", n)
		}
		if h.Remaining() < timeout/2 {
			t.Errorf("held for %v", h.Remaining())
		}
		time.Sleep(timeout)
		if lost.yet() {
			t.Errorf("lost to %v", lost.cause)
		}
	})
}
