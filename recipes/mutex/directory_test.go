package mutex_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// admin is a plain client that may do what the others may not.
func admin(e *locktest.Env) *zk.Conn {
	c, events, err := zk.Connect([]string{e.Addr()}, 10*time.Second, zk.WithDialer(e.DialTimeout), zk.WithLogInfo(false))
	if err != nil {
		e.T.Fatal(err)
	}
	for ev := range events {
		if ev.State == zk.StateHasSession {
			break
		}
	}
	e.T.Cleanup(c.Close)
	if err := c.AddAuth("digest", []byte("admin:admin")); err != nil {
		e.T.Fatal(err)
	}
	return c
}

// protect makes the lock directory, in which the world has only perms.
func protect(e *locktest.Env, perms int32) {
	acl := append(zk.DigestACL(zk.PermAll, "admin", "admin"), zk.WorldACL(perms)...)
	c := admin(e)
	if _, err := c.Create("/locks", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		e.T.Fatal(err)
	}
	if _, err := c.Create(locktest.Path, nil, 0, acl); err != nil {
		e.T.Fatal(err)
	}
}

// case 75
func TestNoPermission(t *testing.T) {
	for _, perms := range []int32{zk.PermRead, zk.PermCreate, zk.PermDelete | zk.PermRead | zk.PermWrite} {
		locktest.Run(t, func(e *locktest.Env) {
			protect(e, perms)
			m := e.New()
			before := e.Tree()
			start := time.Now()
			for name, lock := range map[string]func(context.Context) (*recipes.Grant, error){"Lock": m.Lock, "TryLock": m.TryLock} {
				e.ResetCounts()
				if _, err := lock(e.T.Context()); !errors.Is(err, recipes.ErrPermission) || !errors.Is(err, zk.ErrNoAuth) {
					t.Errorf("%s with permissions %d: %v", name, perms, err)
				}
				if n := e.Requests().Total(); n > 6 {
					t.Errorf("%d requests: tried again", n)
				}
			}
			if d := time.Since(start); d > 10*time.Millisecond {
				t.Errorf("took %v", d)
			}
			e.Empty()
			if after := e.Tree(); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// case 75: the parent may not be written to.
func TestNoPermissionToMakeTheDirectory(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		c := admin(e)
		c.Create("/locks", nil, 0, append(zk.DigestACL(zk.PermAll, "admin", "admin"), zk.WorldACL(zk.PermRead)...))
		if _, err := e.New().Lock(e.T.Context()); !errors.Is(err, recipes.ErrPermission) {
			t.Error(err)
		}
		if _, err := e.New().TryLock(e.T.Context()); !errors.Is(err, recipes.ErrPermission) {
			t.Error(err)
		}
	})
}

// case 75: the nodes that are made can't be read by us.
func TestNoPermissionToReadTheOwnNode(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		e.Release(e.Lock(e.New()))
		s := e.Open(func(c *session.Config) { c.ACL = zk.DigestACL(zk.PermAll, "admin", "admin") })
		if _, err := e.Mutex(s).Lock(e.T.Context()); !errors.Is(err, recipes.ErrPermission) {
			t.Error(err)
		}
		e.Empty()
	})
}

// The directory's data can't be written: the lock works, by listing.
func TestNoPermissionToWriteTheDirectory(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		protect(e, zk.PermCreate|zk.PermDelete|zk.PermRead)
		var w locktest.Witness
		var waiting []*locktest.Attempt
		for i := range 5 {
			waiting = append(waiting, e.Start(e.New().Lock))
			e.Queued(i + 1)
		}
		for i, a := range waiting {
			g := a.Grant(time.Second)
			w.Saw(e.T, g)
			time.Sleep(time.Second)
			if i+1 < len(waiting) && !waiting[i+1].Pending() {
				t.Error("two hold")
			}
			e.Release(g)
		}
		if _, err := e.New(recipes.LockDelay(time.Second)).Lock(e.T.Context()); !errors.Is(err, recipes.ErrPermission) {
			t.Errorf("a lock delay, for which it must be written: %v", err)
		}
		e.Empty()
	})
}

// Deleting is refused: Release says so, and the lock goes with the session.
func TestNoPermissionToDelete(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		protect(e, zk.PermCreate|zk.PermRead|zk.PermWrite)
		s := e.Open()
		g := e.Lock(e.Mutex(s))
		for range 2 {
			if err := g.Release(e.T.Context()); !errors.Is(err, recipes.ErrPermission) {
				t.Errorf("Release: %v", err)
			}
		}
		if !errors.Is(g.Err(), recipes.ErrReleased) {
			t.Error(g.Err())
		}
		a := e.Start(e.New().Lock)
		time.Sleep(time.Minute)
		if !a.Pending() {
			t.Error("granted while the node is there")
		}
		s.Close()
		a.Grant(time.Second)
	})
}

// case 77: the reaper comes at each moment.
func TestDirectoryIsReapedAllTheTime(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		var w locktest.Witness
		a, b := e.New(), e.New()
		e.Delay(3 * time.Millisecond)
		for i := range 200 {
			m := a
			if i%3 == 0 {
				m = b
			}
			g := e.Lock(m)
			w.Saw(e.T, g)
			e.Release(g)
			time.Sleep(time.Duration(i%11) * time.Millisecond)
		}
		e.Delay(0)
		e.Empty()
	}, zktest.ReapInterval(5*time.Millisecond))
}

// case 77: reaped between the look and the create.
func TestDirectoryIsReapedBeforeTheCreate(t *testing.T) {
	for _, again := range []bool{false, true} { // and made again by somebody
		locktest.Run(t, func(e *locktest.Env) {
			m, other := e.New(), e.New()
			e.Release(e.Lock(m))
			e.Release(e.Lock(other))
			arrived, release := e.HoldRequest(zktest.OpCreate2, 1)
			a := e.Start(m.Lock)
			locktest.Await(e, arrived)
			e.DeleteAll(locktest.Path)
			var g *recipes.Grant
			if again {
				g = e.Lock(other)
			}
			release()
			if again {
				time.Sleep(time.Second)
				if !a.Pending() {
					t.Fatal("granted while another holds")
				}
				e.Queued(2)
				e.Release(g)
			}
			g = a.Grant(time.Second)
			// The name begins with the stamp of the directory that it is in.
			dir, _ := e.Stat(locktest.Path)
			if stamp := locktest.Path + "/" + strconv.FormatInt(dir.Czxid, 16) + "-lock-"; !strings.HasPrefix(nodeOf(e, g), stamp) {
				t.Errorf("held by %s in the directory with the stamp %s", nodeOf(e, g), stamp)
			}
			e.Release(g)
			e.Empty()
		})
	}
}

// case 78
func TestServerWithoutContainers(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		var w locktest.Witness
		a, b := e.New(), e.New()
		for range 3 {
			g := e.Lock(a)
			w.Saw(e.T, g)
			next := e.Start(b.Lock)
			e.Queued(2)
			e.Release(g)
			g = next.Grant(time.Second)
			w.Saw(e.T, g)
			e.Release(g)
		}
		e.Empty()
		if !e.Exists(locktest.Path) {
			t.Error("a persistent directory went away")
		}
	}, zktest.WithoutContainers())
}

// A chroot: what is locked below it is that very path.
func TestChroot(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		e.Create("/app", nil)
		s := e.Open(func(c *session.Config) { c.Chroot = "/app/locks" })
		m := e.MutexAt(s, "/x")
		g := e.Lock(m)
		if len(e.Children("/app/locks/x")) != 1 || m.Path() != "/x" || g.Path() != "/x" {
			t.Errorf("%s %s\n%s", m.Path(), g.Path(), e.Tree())
		}
		whole := e.MutexAt(e.Open(), "/app/locks/x")
		a := e.Start(whole.Lock)
		time.Sleep(time.Second)
		if !a.Pending() {
			t.Error("two hold")
		}
		cs, err := m.Contenders(e.T.Context())
		if err != nil || len(cs) != 2 {
			t.Errorf("%v, %v", cs, err)
		}
		e.Release(g)
		e.Release(a.Grant(time.Second))
	})
}
