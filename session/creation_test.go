package session_test

import (
	"testing"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// check compares what a creation tells with what the server has.
func checkCreated(t *testing.T, srv *zktest.Server, chroot string) {
	t.Helper()
	cfg := config(srv)
	cfg.Chroot = chroot
	_, l := open(t, cfg)
	srv.Create(chroot+"/dir", []byte("above"))
	for _, prefix := range []string{"/dir/n-", "/n-"} {
		made, err := l.CreateSequential(t.Context(), prefix, []byte(chroot+prefix))
		if err != nil {
			t.Fatal(err)
		}
		want, ok := srv.Stat(chroot + made.Path)
		if !ok || made.Stat.Czxid != want.Czxid || made.Stat.EphemeralOwner != l.ID() || int(made.Stat.DataLength) != len(chroot+prefix) {
			t.Errorf("%s: stat %+v, want %+v", made.Path, made.Stat, want)
		}
		// Whoever was made is among the children: the parent was read afterwards.
		if made.ParentStat.Pzxid < made.Stat.Czxid {
			t.Errorf("%s: the parent was read at %d, before the node was made at %d", made.Path, made.ParentStat.Pzxid, made.Stat.Czxid)
		}
		if prefix == "/dir/n-" && string(made.Parent) != "above" {
			t.Errorf("%s: the parent's data is %q", made.Path, made.Parent)
		}
	}
}

func TestCreationTellsStatAndParent(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		checkCreated(t, srv, "")
		checkCreated(t, srv, "/app")
		if n := srv.Requests().Of(zktest.OpExists) - 1; n > 0 { // one is for the chroot
			t.Errorf("%d more reads than needed", n)
		}
	})
}

// Servers before 3.5 know no create that answers with a stat.
func TestCreationOnAnOldServer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.FailRequest(zktest.OpCreate2, 1, int32(zktest.Unimplemented))
		checkCreated(t, srv, "")
		if n := srv.Requests().Of(zktest.OpCreate2); n != 1 {
			t.Errorf("asked %d times for what the server does not know", n)
		}
		if n := srv.Requests().Of(zktest.OpCreate); n != 2 {
			t.Errorf("%d creates: want 2", n)
		}
	})
}

// What was read behind a request says nothing of a node that was made by a later
// one.
func TestCreationRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.LoseRequest(zktest.OpCreate2, 1)
		checkCreated(t, srv, "")
		srv.LoseReply(zktest.OpCreate2, 1)
		checkCreated(t, srv, "/app")
	})
}
