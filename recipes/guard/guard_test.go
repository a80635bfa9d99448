package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/guard"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// world is a server with a session below a chroot and one lock that is held.
type world struct {
	srv  *zktest.Server
	sess *session.Session
	m    *mutex.Mutex
	g    *recipes.Grant
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{srv: zktest.Start(t, zktest.InMemory())}
	var err error
	w.sess, err = session.Open(t.Context(), session.Config{Servers: []string{w.srv.Addr()}, Dial: w.srv.Dial, Chroot: "/app"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.sess.Close() })
	if err := w.srv.Create("/app/value", []byte("old")); err != nil {
		t.Fatal(err)
	}
	if w.m, err = mutex.New(w.sess, "/lock"); err != nil {
		t.Fatal(err)
	}
	if w.g, err = w.m.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) write(ctx context.Context, g *recipes.Grant) error {
	_, err := guard.Multi(ctx, g, &zk.SetDataRequest{Path: "/value", Data: []byte("new"), Version: -1})
	return err
}

func (w *world) value(t *testing.T) string {
	t.Helper()
	data, _ := w.srv.Data("/app/value")
	return string(data)
}

func TestWriteWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		res, err := guard.Multi(t.Context(), w.g,
			&zk.SetDataRequest{Path: "/value", Data: []byte("new"), Version: 0},
			&zk.CreateRequest{Path: "/made", Acl: zk.WorldACL(zk.PermAll)})
		if err != nil {
			t.Fatal(err)
		}
		if len(res) != 2 || res[0].Stat.Version != 1 || res[1].String != "/made" {
			t.Errorf("results %+v: want those of the two writes", res)
		}
		if got := w.value(t); got != "new" {
			t.Errorf("value is %q", got)
		}
	})
}

// case 57
func TestWriteAfterTheNodeWasDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		// Whatever the program has heard of so far, the server decides.
		arrived, release := w.srv.HoldRequest(zktest.OpMulti, 1)
		wrote := make(chan error, 1)
		go func() { wrote <- w.write(t.Context(), w.g) }()
		<-arrived
		if err := w.srv.DeleteAll("/app/lock"); err != nil {
			t.Fatal(err)
		}
		release()
		if err := <-wrote; !errors.Is(err, recipes.ErrRevoked) {
			t.Errorf("write after the loss: %v, want ErrRevoked", err)
		}
		if got := w.value(t); got != "old" {
			t.Errorf("value is %q: a write got through without the lock", got)
		}
		if err := w.g.Err(); !errors.Is(err, recipes.ErrNodeDeleted) {
			t.Errorf("grant's Err is %v, want ErrNodeDeleted", err)
		}
	})
}

// cases 34, 57: what a stopped holder sends when it goes on is refused by the
// ensemble, not by our clock.
func TestChecksInsideTheCallersOwnTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		checks, err := guard.Checks(t.Context(), w.g)
		if err != nil {
			t.Fatal(err)
		}
		own, events, err := zk.Connect([]string{w.srv.Addr()}, session.DefaultTimeout, zk.WithLogInfo(false),
			zk.WithDialer(w.srv.DialTimeout))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			own.Close()
			for range events {
			}
		}()
		set := &zk.SetDataRequest{Path: "/app/value", Data: []byte("one"), Version: -1}
		if _, err := own.Multi(append(checks, set)...); err != nil {
			t.Fatalf("while held: %v", err)
		}
		if err := w.g.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		g2, err := w.m.Lock(t.Context()) // somebody else's turn
		if err != nil {
			t.Fatal(err)
		}
		defer g2.Release(t.Context())
		set.Data = []byte("late")
		if _, err := own.Multi(append(checks, set)...); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("after the release: %v, want zk.ErrNoNode", err)
		}
		if got := w.value(t); got != "one" {
			t.Errorf("value is %q: a late write got through", got)
		}
	})
}

func TestRefusedBeforeAnythingIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		before := w.srv.Requests().Of(zktest.OpMulti)
		if _, err := guard.Multi(t.Context(), nil); !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("nil grant: %v", err)
		}
		if _, err := guard.Multi(t.Context(), w.g, "not an op"); !errors.Is(err, recipes.ErrInvalid) || !errors.Is(err, session.ErrInvalid) {
			t.Errorf("unknown op: %v", err)
		}
		if got := w.srv.Requests().Of(zktest.OpMulti); got != before {
			t.Errorf("%d transactions were sent", got-before)
		}
		w.g.Release(t.Context())
		before = w.srv.Requests().Of(zktest.OpMulti)
		if err := w.write(t.Context(), w.g); !errors.Is(err, recipes.ErrReleased) {
			t.Errorf("released grant: %v", err)
		}
		if _, err := guard.Checks(t.Context(), w.g); !errors.Is(err, recipes.ErrReleased) {
			t.Errorf("checks of a released grant: %v", err)
		}
		if got := w.srv.Requests().Of(zktest.OpMulti); got != before {
			t.Errorf("%d transactions were sent", got-before)
		}
	})
}

// cases 49, 57: the directory was made anew, and another's node stands there under the
// same name, as that of a client does for a moment that has not noticed.
func TestNodeOfTheSameNameIsAnothers(t *testing.T) {
	for _, before := range []bool{true, false} { // whether the grant has been used for a write before
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			node := "/app/lock/" + w.srv.Children("/app/lock")[0]
			var checks []any
			if before {
				var err error
				if checks, err = guard.Checks(t.Context(), w.g); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.srv.DeleteAll("/app/lock"); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"/app/lock", node} {
				if err := w.srv.Create(path, []byte("another's")); err != nil {
					t.Fatal(err)
				}
			}
			if before {
				life, err := w.sess.Life(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range checks { // they are for a connection without a chroot
					c := c.(*zk.CheckVersionRequest)
					c.Path = strings.TrimPrefix(c.Path, "/app")
				}
				_, err = life.Multi(t.Context(), append(checks, &zk.SetDataRequest{Path: "/value", Data: []byte("late"), Version: -1})...)
				if !errors.Is(err, zk.ErrBadVersion) {
					t.Errorf("checks from before: %v, want zk.ErrBadVersion", err)
				}
			}
			if err := w.write(t.Context(), w.g); err == nil {
				t.Errorf("used before %v: written", before)
			}
			if got := w.value(t); got != "old" {
				t.Errorf("used before %v: the value is %q", before, got)
			}
		})
	}
}

// A value that is published in between is no loss.
func TestVersionHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		node := "/app/lock/" + w.srv.Children("/app/lock")[0]
		for range 3 {
			if err := w.write(t.Context(), w.g); err != nil {
				t.Fatal(err)
			}
			if err := w.srv.Set(node, []byte("more")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestFailureOfTheCallersOwnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, err := guard.Multi(t.Context(), w.g, &zk.SetDataRequest{Path: "/value", Data: []byte("new"), Version: 99})
		if !errors.Is(err, zk.ErrBadVersion) || errors.Is(err, recipes.ErrRevoked) {
			t.Errorf("wrong version: %v, want zk.ErrBadVersion", err)
		}
		if err := w.g.Err(); err != nil {
			t.Errorf("the grant ended: %v", err)
		}
	})
}

func TestSeveralLocksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.g.Release(t.Context())
		other, err := mutex.New(w.sess, "/other")
		if err != nil {
			t.Fatal(err)
		}
		g, err := recipes.All(t.Context(), w.m, other)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Release(t.Context())
		if err := w.write(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		if checks, err := guard.Checks(t.Context(), g); err != nil || len(checks) != 2 {
			t.Errorf("checks %v, %v: want two", checks, err)
		}
		if err := w.srv.DeleteAll("/app/other"); err != nil {
			t.Fatal(err)
		}
		if err := w.write(t.Context(), g); !errors.Is(err, recipes.ErrRevoked) {
			t.Errorf("after the loss of one: %v, want ErrRevoked", err)
		}
	})
}
