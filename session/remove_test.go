package session_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// remove waits for the end of a removal.
func remove(t *testing.T, l *session.Life, path string, with ...any) error {
	t.Helper()
	done := make(chan error, 1)
	l.Remove(path, with, func(err error) { done <- err })
	return <-done
}

// case 7, case 47
func TestRepliesAndRequestsOfDeleteLost(t *testing.T) {
	for k := range 6 {
		for _, multi := range []bool{false, true} {
			for _, lose := range []func(*zktest.Server, zktest.Op, int){(*zktest.Server).LoseReply, (*zktest.Server).LoseRequest} {
				bubble(t, func(t *testing.T, srv *zktest.Server) {
					_, l := open(t, config(srv))
					srv.Create("/d", nil)
					path := node(t, l, "/d/n-")
					op, with := zktest.OpDelete, []any(nil)
					if multi {
						op, with = zktest.OpMulti, []any{&zk.SetDataRequest{Path: "/d", Data: []byte("x"), Version: -1}}
					}
					for i := range k {
						lose(srv, op, i+1)
					}
					if err := remove(t, l, path, with...); err != nil || srv.Exists(path) {
						t.Errorf("%v, still there: %v", err, srv.Exists(path))
					}
					if data, _ := srv.Data("/d"); multi != (string(data) == "x") {
						t.Errorf("data %q", data)
					}
				})
			}
		}
	}
}

// case 47: a delete that meets an outage is carried out after it.
func TestRemoveDuringAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		path := node(t, l, "/n-")
		srv.Refuse(true)
		srv.Cut(l.ID())
		time.AfterFunc(timeout/2, func() { srv.Refuse(false) })
		if err := remove(t, l, path); err != nil || srv.Exists(path) {
			t.Errorf("%v, still there: %v", err, srv.Exists(path))
		}
	})
}

// case 7: the end of the session is the end of the node.
func TestRemoveEndsWithTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		path := node(t, l, "/n-")
		srv.Refuse(true)
		srv.Cut(l.ID())
		srv.Expire(l.ID())
		time.AfterFunc(timeout/2, func() { srv.Refuse(false) })
		if err := remove(t, l, path); err != nil || l.Err() != session.ErrExpired {
			t.Errorf("%v, %v", err, l.Err())
		}
		if err := remove(t, l, path); err != nil {
			t.Errorf("under a life that is over: %v", err)
		}
	})
}

// What the server refuses is left out; the rest goes with the node.
func TestRemoveWithoutWhatIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		srv.Create("/d/stale", nil)
		path := node(t, l, "/d/n-")
		err := remove(t, l, path,
			&zk.SetDataRequest{Path: "/missing", Version: -1},
			&zk.SetDataRequest{Path: "/d", Data: []byte("x"), Version: -1},
			&zk.DeleteRequest{Path: "/d/stale", Version: 5},
			&zk.DeleteRequest{Path: "/d/none", Version: -1})
		if data, _ := srv.Data("/d"); err != nil || srv.Exists(path) || string(data) != "x" || !srv.Exists("/d/stale") {
			t.Errorf("%v, left:\n%s", err, srv.Tree())
		}
		path = node(t, l, "/n-")
		if err := remove(t, l, path, &zk.SetDataRequest{Path: "/missing", Version: -1}); err != nil || srv.Exists(path) {
			t.Errorf("%v, still there: %v", err, srv.Exists(path))
		}
		srv.ResetCounts()
		err = remove(t, l, path, &zk.SetDataRequest{Path: "/missing", Version: -1})
		if n := srv.Requests().Of(zktest.OpDelete); !errors.Is(err, zk.ErrNoNode) || n != 0 {
			t.Errorf("a node that is gone: %v, deleted %d times", err, n)
		}
		if err := remove(t, l, path, "nonsense"); !errors.Is(err, session.ErrInvalid) {
			t.Error(err)
		}
	})
}

func TestRemoveRefused(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		srv.Create("/d/child", nil)
		if err := remove(t, l, "/d"); !errors.Is(err, zk.ErrNotEmpty) {
			t.Error(err)
		}
		for i, code := range []zktest.Code{-127, zktest.SessionMoved, zktest.ConnectionLoss, zktest.OperationTimeout} {
			srv.FailRequest(zktest.OpDelete, i+1, int32(code)) // say nothing about the node
		}
		if err := remove(t, l, "/d/child"); err != nil || srv.Exists("/d/child") {
			t.Errorf("%v, still there: %v", err, srv.Exists("/d/child"))
		}
	})
}

// A request that may not be made twice says when it can't tell.
func TestReplyOfMultiLost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		acl := zk.WorldACL(zk.PermAll)
		create := func(i int) error {
			_, err := l.Multi(t.Context(), &zk.CreateRequest{Path: fmt.Sprint("/n", i), Acl: acl})
			return err
		}
		srv.LoseReply(zktest.OpMulti, 1)
		if err := create(1); !errors.Is(err, session.ErrOutcomeUnknown) || !srv.Exists("/n1") {
			t.Error(err)
		}
		srv.FailRequest(zktest.OpMulti, 1, int32(zktest.SessionMoved)) // certainly not carried out
		if err := create(2); err != nil || !srv.Exists("/n2") {
			t.Error(err)
		}
		if err := create(2); !errors.Is(err, zk.ErrNodeExists) || errors.Is(err, session.ErrOutcomeUnknown) {
			t.Error(err)
		}
		arrived, _ := srv.HoldRequest(zktest.OpMulti, 1)
		go func() { <-arrived; srv.Expire(l.ID()) }()
		if err := create(3); !errors.Is(err, session.ErrExpired) && !errors.Is(err, session.ErrOutcomeUnknown) {
			t.Error(err)
		}
	})
}
