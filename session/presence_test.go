package session_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func presence(t *testing.T, l *session.Life, path string) *session.Watch {
	t.Helper()
	w, err := l.WatchPresence(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestNodeComesChangesAndGoes(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		for _, step := range []struct {
			happens func()
			there   bool
		}{
			{func() { srv.Create("/p", nil) }, false},
			{func() { srv.Set("/p", []byte("x")) }, true},
			{func() { srv.Delete("/p") }, true},
			{func() { srv.Cut(l.ID()) }, false},
			{func() { srv.Create("/p", nil) }, false},
		} {
			w := presence(t, l, "/p")
			if (w.Stat != nil) != step.there {
				t.Errorf("there: %v, want %v", w.Stat != nil, step.there)
			}
			if fired(w) {
				t.Error("fired although nothing happened")
			}
			presence(t, l, "/p")
			step.happens()
			if !fired(w) {
				t.Error("not fired")
			}
		}
		if n := srv.Watches(); n != 0 {
			t.Errorf("%d watches on the server", n)
		}
	})
}

// Both kinds of watch on one path: one event of the server is for both.
func TestPresenceAndDataWatchedTogether(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		srv.Create("/p", nil)
		for i := range 10 {
			data, there := watch(t, l, "/p"), presence(t, l, "/p")
			srv.Set("/p", fmt.Append(nil, i))
			if !fired(data) || !fired(there) {
				t.Errorf("fired: data %v, presence %v", fired(data), fired(there))
			}
		}
	})
}

// The node comes while the connection is down.
func TestNodeComesDuringACut(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		w := presence(t, l, "/p")
		srv.Refuse(true)
		srv.Cut(l.ID())
		srv.Create("/p", nil)
		time.Sleep(time.Second)
		srv.Refuse(false)
		if !fired(w) {
			t.Error("not fired")
		}
		if w := presence(t, l, "/p"); w.Stat == nil {
			t.Error("not seen")
		}
	})
}
