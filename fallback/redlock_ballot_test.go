package fallback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The process was stopped while the votes were counted: a majority that is known too late
// is none. The grant is not made, and what the servers gave is given back. R52
func TestMajorityIsKnownTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var minis []*miniredis.Miniredis
		var servers []redis.UniversalClient
		for i := range 3 {
			m := miniredis.NewMiniRedis()
			m.ClockTTL(true)
			t.Cleanup(m.Close)
			rdb := redis.NewClient(&redis.Options{
				Addr:                     fmt.Sprintf("127.0.0.%d:6379", i+1),
				Dialer:                   func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			t.Cleanup(func() { rdb.Close() })
			minis, servers = append(minis, m), append(servers, rdb)
		}
		r, err := NewRedlock(servers, "x")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		late := func(d time.Duration) *ballot {
			b := r.newBallot()
			if won, err := b.hold(t.Context()); !won || err != nil {
				t.Fatal(won, err)
			}
			b.sent = stamp{b.sent.mono.Add(-d), b.sent.wall.Add(-d)}
			return b
		}
		b := late(r.cfg.ttl * 2 / 3)
		if g, err := b.grant(); g != nil || !errors.Is(err, ErrNoQuorum) {
			t.Errorf("%v, %v", g, err)
		}
		if len(r.holds) > 0 {
			t.Errorf("%d are renewed", len(r.holds))
		}
		<-b.voted
		b.withdraw(0, nil)
		synctest.Wait()
		for i, m := range minis {
			if m.Exists("lockkeeper:{x}:redlock") {
				t.Errorf("left on server %d", i)
			}
		}
		for _, try := range []bool{true, false} { // Lock asks again
			b := r.newBallot()
			b.sent = stamp{b.sent.mono.Add(-r.cfg.ttl), b.sent.wall.Add(-r.cfg.ttl)}
			g, err := b.attempt(t.Context(), try)
			if g != nil || try != errors.Is(err, ErrNoQuorum) || !errors.Is(errors.Join(err, b.trouble()), errLate) {
				t.Errorf("try %v: %v, %v; trouble %v", try, g, err, b.trouble())
			}
			synctest.Wait() // it is given back in the background
		}
		g, err := late(r.cfg.ttl / 2).grant()
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
