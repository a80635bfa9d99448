package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// Everything is taken below the chroot, and nothing of it is seen outside.
func TestChroot(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		cfg := config(srv)
		cfg.Chroot = "/tenants/a"
		s, l := open(t, cfg)
		if st, ok := srv.Stat("/tenants/a"); !ok || st.EphemeralOwner != 0 {
			t.Errorf("the chroot was not made: %v", st)
		}
		if !strings.HasSuffix(s.Realm(), "/tenants/a") {
			t.Errorf("realm %s", s.Realm())
		}
		if err := l.EnsureContainer(t.Context(), "/locks/x", []byte("data")); err != nil {
			t.Fatal(err)
		}
		path := node(t, l, "/locks/x/n-")
		if path != "/locks/x/n-0000000000" || !srv.Exists("/tenants/a"+path) || l.Full(path) != "/tenants/a"+path {
			t.Errorf("made %s:\n%s", path, srv.Tree())
		}
		if names, _, err := l.Children(t.Context(), "/locks/x"); err != nil || len(names) != 1 {
			t.Errorf("children %v, %v", names, err)
		}
		if names, _, err := l.Children(t.Context(), "/"); err != nil || len(names) != 1 || names[0] != "locks" {
			t.Errorf("children of the chroot: %v, %v", names, err)
		}
		if data, _, err := l.Get(t.Context(), "/locks/x"); err != nil || string(data) != "data" {
			t.Errorf("%q, %v", data, err)
		}
		if st, err := l.Exists(t.Context(), "/tenants"); err != nil || st != nil {
			t.Errorf("what is outside: %v, %v", st, err)
		}

		w := watch(t, l, "/locks/x")
		srv.Set("/tenants/a/locks/x", []byte("new"))
		if !fired(w) {
			t.Error("no event")
		}
		create := &zk.CreateRequest{Path: "/m-", Flags: zk.FlagSequence, Acl: zk.WorldACL(zk.PermAll)}
		res, err := l.Multi(t.Context(), create, &zk.SetDataRequest{Path: "/locks/x", Version: -1}, &zk.CheckVersionRequest{Path: "/locks", Version: -1})
		if err != nil || len(res) != 3 || res[0].String != "/m-0000000001" || create.Path != "/m-" {
			t.Errorf("%v, %v, %s", res, err, create.Path)
		}
		if err := l.Prove(t.Context(), path); err != nil {
			t.Error(err)
		}
		_, lost := hold(t, l, path)
		if err := remove(t, l, path); err != nil || srv.Exists("/tenants/a"+path) {
			t.Error(err)
		}
		lost.wait(t)
	})
}

// Chroot nodes that are there need not be ours to make, nor those above.
func TestChrootBelowWhatIsNotOurs(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		admin := config(srv)
		admin.Auth = []session.Auth{{Scheme: "digest", Credentials: "admin:secret"}}
		_, l := open(t, admin)
		closed := append(zk.DigestACL(zk.PermAll, "admin", "secret"), zk.WorldACL(zk.PermRead)...)
		for _, path := range []string{"/closed", "/private"} {
			if _, err := l.Multi(t.Context(), &zk.CreateRequest{Path: path, Acl: closed}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Multi(t.Context(), &zk.CreateRequest{Path: "/closed/open", Acl: zk.WorldACL(zk.PermAll)}); err != nil {
			t.Fatal(err)
		}
		cfg := config(srv)
		cfg.Chroot = "/closed/open/a/b"
		_, below := open(t, cfg)
		node(t, below, "/n-")

		cfg.Chroot = "/private/a"
		if _, err := session.Open(t.Context(), cfg); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a chroot that we may not make: %v", err)
		}
		cfg.Auth = []session.Auth{{Scheme: "digest", Credentials: "admin:wrong"}}
		if _, err := session.Open(t.Context(), cfg); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("with the wrong password: %v", err)
		}
		cfg.Auth = admin.Auth
		open(t, cfg)
	})
}

// Replies that are lost while the chroot is made don't matter.
func TestRepliesLostWhileTheChrootIsMade(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpExists, zktest.OpCreate2} {
		for n := range 3 {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				cfg := config(srv)
				cfg.Chroot = "/a/b/c"
				srv.LoseReply(op, n+1)
				_, l := open(t, cfg)
				node(t, l, "/n-")
			})
		}
	}
}

// case 75
func TestACLOfWhatWeMake(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		cfg := config(srv)
		cfg.Chroot = "/c"
		cfg.Auth = []session.Auth{{Scheme: "digest", Credentials: "user:secret"}}
		cfg.ACL = zk.DigestACL(zk.PermAll, "user", "secret")
		_, l := open(t, cfg)
		if err := l.EnsureContainer(t.Context(), "/d/e", nil); err != nil {
			t.Fatal(err)
		}
		path := node(t, l, "/d/e/n-")
		_, lost := hold(t, l, path)

		_, stranger := open(t, config(srv))
		for _, p := range []string{"/c", "/c/d", "/c/d/e", "/c" + path} {
			if _, _, err := stranger.Get(t.Context(), p); !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("%s is open to strangers: %v", p, err)
			}
		}
		if _, err := stranger.CreateSequential(t.Context(), "/c/d/e/n-", nil); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a stranger's create: %v", err)
		}
		if err := remove(t, stranger, "/c"+path); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a stranger's delete: %v", err)
		}
		synctest.Wait()
		if lost.yet() {
			t.Error(lost.cause)
		}
	})
}

// case 78: servers that know no containers answer and close the connection.
func TestServerWithoutContainers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		for _, path := range []string{"/a/b/c", "/a/b/d", "/a/b/c"} {
			if err := l.EnsureContainer(context.Background(), path, []byte("x")); err != nil || !srv.Exists(path) {
				t.Fatalf("%s: %v", path, err)
			}
		}
		if n := srv.Requests().Of(zktest.OpCreateContainer); n != 1 {
			t.Errorf("asked for a container %d times", n)
		}
	}, zktest.WithoutContainers())
}

// A node that is there stays as it is.
func TestContainerThatIsThere(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		srv.Create("/a/b", []byte("old"))
		for range 2 {
			srv.LoseReply(zktest.OpCreateContainer, 1)
			if err := l.EnsureContainer(t.Context(), "/a/b", []byte("new")); err != nil {
				t.Error(err)
			}
		}
		if data, _ := srv.Data("/a/b"); string(data) != "old" {
			t.Errorf("%q", data)
		}
		srv.CreateEphemeral("/e", nil, l.ID())
		if err := l.EnsureContainer(t.Context(), "/e/x", nil); !errors.Is(err, zk.ErrNoChildrenForEphemerals) {
			t.Error(err)
		}
	})
}
