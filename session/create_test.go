package session_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 1
func TestReplyOfCreateLost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		srv.Create("/d", nil)
		// What is found must be ours, by owner and by data.
		srv.Create("/d/n-foreign", []byte("mine"))
		l.CreateSequential(t.Context(), "/d/n-", []byte("another"))
		srv.LoseReply(zktest.OpCreate2, 1)
		var path string
		within(t, 2*time.Second, "a create", func() {
			made, err := l.CreateSequential(t.Context(), "/d/n-", []byte("mine"))
			if err != nil || made.Path != "/d/n-0000000002" {
				t.Errorf("made %v, %v", made, err)
				return
			}
			path = made.Path
		})
		if st, ok := srv.Stat(path); !ok || st.EphemeralOwner != l.ID() {
			t.Errorf("%s: %v, %v", path, st, ok)
		}
		if names := srv.Children("/d"); len(names) != 3 {
			t.Errorf("children %v", names)
		}
		if n := srv.Requests().Of(zktest.OpCreate2); n != 2 {
			t.Errorf("%d creates", n)
		}
	})
}

// case 2: the replies to the search are lost, too, up to five times each.
func TestRepliesOfCreateAndOfTheSearchLost(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpSync, zktest.OpGetChildren2, zktest.OpGetData} {
		for k := range 6 {
			t.Run(fmt.Sprint(op, k), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zktest.Server) {
					_, l := open(t, config(srv))
					srv.Create("/d", nil)
					srv.LoseReply(zktest.OpCreate2, 1)
					for i := range k {
						srv.LoseReply(op, i+1)
					}
					path := node(t, l, "/d/n-")
					if names := srv.Children("/d"); len(names) != 1 || "/d/"+names[0] != path {
						t.Errorf("made %s, children %v", path, names)
					}
				})
			})
		}
	}
}

// case 1: a create that was not carried out is made again.
func TestCreateLost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		srv.Create("/d", nil)
		for i := range 4 {
			srv.LoseRequest(zktest.OpCreate2, i+1)
		}
		node(t, l, "/d/n-")
		if names := srv.Children("/d"); len(names) != 1 {
			t.Errorf("children %v", names)
		}
	})
}

// case 4: the search meets a follower that has not heard of the node yet.
func TestReplyOfCreateLostBeforeAStaleList(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		srv.Create("/d", nil)
		arrived, release := srv.HoldRequest(zktest.OpCreate2, 1)
		srv.LoseReply(zktest.OpCreate2, 1)
		var path string
		done := make(chan struct{})
		go func() {
			defer close(done)
			path = node(t, l, "/d/n-")
		}()
		<-arrived
		// Stale from after the write, which would end it, to the first sync.
		var once sync.Once
		srv.OnRequest(func(r zktest.Request) {
			if r.Op == zktest.OpConnect {
				once.Do(func() { staleWithout(srv, l.ID(), "/d") })
			}
		})
		release()
		<-done
		if names := srv.Children("/d"); len(names) != 1 || "/d/"+names[0] != path {
			t.Errorf("made %s, children %v", path, names)
		}
	})
}

// staleWithout makes a session read the tree as it was before dir had children.
func staleWithout(srv *zktest.Server, id int64, dir string) {
	type node struct {
		data  []byte
		owner int64
	}
	kept := make(map[string]node)
	for _, name := range srv.Children(dir) {
		path := dir + "/" + name
		data, _ := srv.Data(path)
		st, _ := srv.Stat(path)
		kept[path] = node{data, st.EphemeralOwner}
		srv.Delete(path)
	}
	srv.StaleReads(id, true)
	for path, n := range kept {
		srv.CreateEphemeral(path, n.data, n.owner)
	}
}

// An error of the search leaves the outcome as unknown as it was.
func TestSearchRefused(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpSync, zktest.OpGetChildren2, zktest.OpGetData} {
		t.Run(op.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				_, l := open(t, config(srv))
				srv.Create("/d", nil)
				srv.LoseReply(zktest.OpCreate2, 1)
				for i := range 10 {
					srv.FailRequest(op, i+1, int32(zktest.BadArguments))
				}
				path := node(t, l, "/d/n-")
				if names := srv.Children("/d"); len(names) != 1 || "/d/"+names[0] != path {
					t.Errorf("made %s, children %v", path, names)
				}
			})
		})
	}
}

// A directory that may not be listed: the caller hears of it at once, and the
// node goes as soon as it can be found.
func TestSearchNotAllowed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		srv.Create("/d", nil)
		srv.LoseReply(zktest.OpCreate2, 1)
		for i := range 5 {
			srv.FailRequest(zktest.OpGetChildren2, i+1, int32(zktest.NoAuth))
		}
		_, err := l.CreateSequential(t.Context(), "/d/n-", []byte("x"))
		if !errors.Is(err, zk.ErrNoAuth) || !errors.Is(err, session.ErrOutcomeUnknown) || len(srv.Children("/d")) != 1 {
			t.Errorf("%v, children %v", err, srv.Children("/d"))
		}
		time.Sleep(time.Second)
		if names := srv.Children("/d"); len(names) != 0 {
			t.Errorf("left %v", names)
		}
	})
}

// case 1: a node of the root, which has no parent with a path of its own.
func TestReplyOfCreateInTheRootLost(t *testing.T) {
	for _, chroot := range []string{"", "/chroot"} {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			cfg := config(srv)
			cfg.Chroot = chroot
			_, l := open(t, cfg)
			srv.LoseReply(zktest.OpCreate2, 1)
			path := node(t, l, "/n-")
			if !srv.Exists(chroot+path) || srv.Sessions()[0].Ephemerals != 1 {
				t.Errorf("made %s:\n%s", path, srv.Tree())
			}
		})
	}
}

// case 5: cancelled at any moment, whatever is lost on the way.
func TestCreateCancelledAtEveryStep(t *testing.T) {
	for seed := range uint64(150) {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			_, l := open(t, config(srv))
			rnd := rand.New(rand.NewPCG(seed, 0))
			srv.Create("/d", nil)
			srv.Delay(time.Millisecond)
			for range rnd.IntN(3) {
				op := []zktest.Op{zktest.OpCreate2, zktest.OpSync, zktest.OpGetChildren2, zktest.OpDelete}[rnd.IntN(4)]
				if rnd.IntN(3) == 0 {
					srv.LoseRequest(op, 1+rnd.IntN(2))
				} else {
					srv.LoseReply(op, 1+rnd.IntN(2))
				}
			}
			ctx := after(t, time.Duration(rnd.IntN(80))*time.Millisecond/4)
			made, err := l.CreateSequential(ctx, "/d/n-", []byte("x"))
			if (err == nil) != (made != nil) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("seed %d: %v, %v", seed, made, err)
			}
			want := 0
			if err == nil {
				want = 1
			}
			time.Sleep(2 * time.Second)
			if names := srv.Children("/d"); len(names) != want {
				t.Errorf("seed %d: children %v after %v", seed, names, err)
			}
		})
	}
}

// case 8, case 9: a stalled server delays the clean-up, not the caller.
func TestCreateCancelledWhileTheServerStalls(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		srv.Create("/d", nil)
		arrived, release := srv.HoldRequest(zktest.OpCreate2, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		within(t, 0, "a cancelled create", func() {
			if _, err := l.CreateSequential(ctx, "/d/n-", []byte("x")); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		release()
		if err := srv.WaitFor(after(t, time.Second), func(v *zktest.View) bool {
			return v.Requests().Of(zktest.OpDelete) == 1 && len(v.Children("/d")) == 0
		}); err != nil {
			t.Errorf("%v: children %v", err, srv.Children("/d"))
		}
	})
}

// What the server refuses is an answer, and the end.
func TestCreateRefused(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		if _, err := l.CreateSequential(t.Context(), "/missing/n-", nil); !errors.Is(err, zk.ErrNoNode) {
			t.Error(err)
		}
		srv.FailRequest(zktest.OpCreate2, 1, int32(zktest.NoAuth))
		if _, err := l.CreateSequential(t.Context(), "/n-", nil); !errors.Is(err, zk.ErrNoAuth) {
			t.Error(err)
		}
	})
}

// Case 77: the server removes an empty container just when something is to be made
// in it.
func TestContainerAboveIsReapedMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, l := open(t, config(srv))
		arrived, release := srv.HoldRequest(zktest.OpCreateContainer, 3) // after that of the node above
		made := make(chan error, 1)
		go func() { made <- l.EnsureContainer(t.Context(), "/a/b", []byte("data")) }()
		<-arrived
		if err := srv.Delete("/a"); err != nil {
			t.Fatal(err)
		}
		release()
		if err := <-made; err != nil {
			t.Fatal(err)
		}
		if data, _ := srv.Data("/a/b"); string(data) != "data" {
			t.Errorf("data %q", data)
		}
	})
}
