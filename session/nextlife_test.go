package session_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 11
func TestCloseRacesCreate(t *testing.T) {
	for seed := range uint64(100) {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			s, l := open(t, config(srv))
			rnd := rand.New(rand.NewPCG(seed, 0))
			srv.Delay(time.Duration(rnd.IntN(3)) * time.Millisecond)
			var wg sync.WaitGroup
			for i := range 10 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond / 2)
					if _, err := l.CreateSequential(t.Context(), "/n-", fmt.Append(nil, i)); err != nil && !errors.Is(err, session.ErrClosed) {
						t.Error(err)
					}
				})
			}
			time.Sleep(time.Duration(rnd.IntN(10)) * time.Millisecond / 2)
			s.Close()
			wg.Wait()
			if tree := srv.Tree(); strings.Contains(tree, "/n-") {
				t.Errorf("seed %d: left:\n%s", seed, tree)
			}
		})
	}
}

// case 10
func TestRequestsOfALifeAreNeverMadeUnderTheNext(t *testing.T) {
	for seed := range uint64(30) {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			cfg := config(srv)
			cfg.Servers = []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}
			s, l := open(t, cfg)
			rnd := rand.New(rand.NewPCG(seed, 0))
			create := func(prefix string) {
				if _, err := l.CreateSequential(t.Context(), "/"+prefix, []byte(prefix)); !errors.Is(err, session.ErrExpired) {
					t.Errorf("a create of a life that expired: %v", err)
				}
				if _, err := l.Multi(t.Context(), &zk.CreateRequest{Path: "/" + prefix, Flags: zk.FlagEphemeral, Acl: zk.WorldACL(zk.PermAll)}); err == nil {
					t.Error("a multi of a life that expired was carried out")
				}
			}
			var wg sync.WaitGroup
			srv.Refuse(true)
			srv.Cut(l.ID())
			for i := range 40 { // the client's queue has room for 16
				wg.Go(func() {
					if i >= 20 {
						time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
					}
					create(fmt.Sprint("n-", i, "-"))
				})
				synctest.Wait()
			}
			srv.Expire(l.ID())
			time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
			srv.Refuse(false)
			wg.Wait()
			next := life(t, s)
			time.Sleep(timeout)
			if next.ID() == l.ID() || len(srv.Children("/")) != 1 {
				t.Errorf("seed %d:\n%s", seed, srv.Tree())
			}
		})
	}
}
