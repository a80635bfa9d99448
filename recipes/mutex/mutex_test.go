package mutex_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func open(t testing.TB, srv *zktest.Server) *session.Session {
	t.Helper()
	s, err := session.Open(t.Context(), session.Config{Servers: []string{srv.Addr()}, Dial: srv.Dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a, b := open(t, srv), open(t, srv)
		ma, err := mutex.New(a, "/locks/x")
		if err != nil {
			t.Fatal(err)
		}
		mb, _ := mutex.New(b, "/locks/x")
		g, err := ma.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mb.TryLock(t.Context()); !errors.Is(err, recipes.ErrBusy) {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				m := ma
				if i%2 == 0 {
					m = mb
				}
				g, err := m.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				t.Log("granted", g.Token(), g.Remaining())
				time.Sleep(3 * time.Second)
				if err := g.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Minute)
		cs, err := ma.Contenders(t.Context())
		t.Log(len(cs), err)
		t.Log(srv.Tree())
		if err := g.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		t.Log(srv.Tree())
		g, err = ma.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		srv.BlackHole(a.ID(), zktest.Both)
		done := make(chan bool)
		go func() {
			g2, err := mb.Lock(context.Background())
			t.Log("b granted", time.Since(start), err, g.Err())
			g2.Release(context.Background())
			close(done)
		}()
		<-g.Done()
		t.Log("a lost after", time.Since(start), g.Err())
		<-done
		srv.Heal()
		g, err = ma.Lock(t.Context())
		t.Log(time.Since(start), err)
		g.Release(t.Context())
		t.Log(srv.Requests())
	})
}
