package session_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// margin is the least by which we must be ahead of the server.
const margin = timeout / 20

// expectLossBeforeExpiry disturbs a session that holds something, and checks
// that the hold is lost by our own clock, before the server ends the session.
// The disturbance comes at many moments of a heartbeat's interval.
func expectLossBeforeExpiry(t *testing.T, disturb func(t *testing.T, srv *zktest.Server, l *session.Life)) {
	for shift := time.Duration(0); shift < timeout/3; shift += timeout / 40 {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			s, l := open(t, config(srv))
			path := node(t, l, "/n-")
			expired := make(chan time.Time, 1)
			go func() {
				srv.WaitFor(t.Context(), func(v *zktest.View) bool { return !v.Exists(path) })
				expired <- time.Now()
			}()
			_, lost := hold(t, l, path)
			time.Sleep(2*timeout + shift)
			if lost.yet() {
				t.Fatalf("lost to %v before anything happened", lost.cause)
			}
			cut := time.Now()
			disturb(t, srv, l)
			lost.wait(t)
			if lost.cause != session.ErrTrustOver || !lost.gone {
				t.Errorf("lost to %v (gone %v)", lost.cause, lost.gone)
			}
			if d := lost.at.Sub(cut); d < timeout/4 || d > timeout {
				t.Errorf("lost %v after the disturbance", d)
			}
			if lead := (<-expired).Sub(lost.at); lead < margin {
				t.Errorf("shift %v: the server ended the session %v after the hold was lost", shift, lead)
			}
			srv.Heal()
			holdNew(t, life(t, s))
			time.Sleep(5 * timeout) // what disturbs comes to its end
		})
	}
}

// case 30
func TestBlackHoleWhileHolding(t *testing.T) {
	expectLossBeforeExpiry(t, func(t *testing.T, srv *zktest.Server, l *session.Life) {
		srv.BlackHole(0, zktest.Both)
	})
}

// case 31
func TestServersRefuseWhileHolding(t *testing.T) {
	expectLossBeforeExpiry(t, func(t *testing.T, srv *zktest.Server, l *session.Life) {
		srv.Refuse(true)
		srv.Cut(l.ID())
	})
}

// case 32: what the server says by itself proves nothing.
func TestEventsProveNothing(t *testing.T) {
	expectLossBeforeExpiry(t, func(t *testing.T, srv *zktest.Server, l *session.Life) {
		var paths []string // one for each event, since a watch can't be set again
		for i := range 60 {
			paths = append(paths, fmt.Sprint("/still-", i))
			srv.Create(paths[i], nil)
			watch(t, l, paths[i])
		}
		srv.BlackHole(l.ID(), zktest.ToServer)
		go func() {
			for _, path := range paths {
				srv.Set(path, nil)
				time.Sleep(timeout / 20)
			}
		}()
	})
}

// case 33: connections are taken and lead nowhere.
func TestHandshakesHangWhileHolding(t *testing.T) {
	expectLossBeforeExpiry(t, func(t *testing.T, srv *zktest.Server, l *session.Life) {
		srv.BlackHole(0, zktest.ToServer)
		srv.Cut(l.ID())
	})
}

// A follower that is cut off from its leader answers pings and reads.
func TestAnswersOfPingsProveNothing(t *testing.T) {
	expectLossBeforeExpiry(t, func(t *testing.T, srv *zktest.Server, l *session.Life) {
		srv.CutOffFollower(l.ID())
	})
}

func TestAnswersOfReadsProveNothing(t *testing.T) {
	expectLossBeforeExpiry(t, func(t *testing.T, srv *zktest.Server, l *session.Life) {
		srv.CutOffFollower(l.ID())
		go func() {
			for l.Err() == nil {
				l.Exists(context.Background(), "/x")
				time.Sleep(timeout / 50)
			}
		}()
	})
}
