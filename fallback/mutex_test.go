package fallback

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockkeeper/lockkeeper/recipes"
)

func bubble(t *testing.T, f func(t *testing.T, srv *miniredis.Miniredis)) {
	synctest.Test(t, func(t *testing.T) {
		srv := miniredis.NewMiniRedis()
		srv.ClockTTL(true)
		t.Cleanup(srv.Close)
		f(t, srv)
	})
}

func connect(t *testing.T, srv *miniredis.Miniredis, opts ...recipes.Option) *Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr:                     "127.0.0.1:6379",
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return srv.Dial() },
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	c, err := New(rdb, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		rdb.Close()
	})
	return c
}

func TestBasics(t *testing.T) {
	bubble(t, func(t *testing.T, srv *miniredis.Miniredis) {
		a, b := connect(t, srv), connect(t, srv)
		ma, err := NewMutex(a, "x")
		if err != nil {
			t.Fatal(err)
		}
		mb, _ := NewMutex(b, "x")
		g, err := ma.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Log(g.Token(), g.Remaining())
		if _, err := mb.TryLock(t.Context()); err == nil {
			t.Fatal("busy")
		} else {
			t.Log(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			g2, err := mb.Lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			t.Log("b", g2.Token(), g2.Remaining())
			list, err := ma.Contenders(t.Context())
			t.Logf("%+v %v", list, err)
			time.Sleep(time.Minute)
			t.Log(g2.Remaining(), g2.Verify(t.Context()), g2.Remaining())
			if err := g2.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Minute)
		list, err := ma.Contenders(t.Context())
		t.Logf("%+v %v", list, err)
		at := time.Now()
		if err := g.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		t.Log(time.Since(at), srv.Keys())
	})
}
