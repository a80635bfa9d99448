package fallback_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/internal/redisconformance"
	"github.com/lockkeeper/lockkeeper/recipes"
)

func TestFairConformance(t *testing.T) {
	redisconformance.Fair(redisconformance.Backend{
		Start:   borrowed,
		Options: []recipes.Option{fallback.TTL(time.Second), fallback.WaiterTimeout(time.Second)},
	}).Run(t)
}

// Ten waiters die, then the holder releases. The server believes for one WaiterTimeout
// that they live, and gives the lock to the first of them for that long: not for ten. R36
func TestDeadWaitersOfFair(t *testing.T) {
	const live = 5 * time.Second
	s := redistest.Start(t)
	l := link.New(t, s.Addr())
	fair := func(addr string) *fallback.Fair {
		f, err := fallback.NewFair(open(t, dial(t, addr)), key(t), fallback.WaiterTimeout(live), fallback.TTL(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, dead, last := fair(s.Addr()), fair(l.Addr()), fair(s.Addr())
	g := await.Grant(t, first.Lock)
	ctx, giveUp := context.WithCancel(t.Context())
	for range 10 {
		go dead.Lock(ctx)
	}
	await.InLine(t, first, 11)
	next := await.Later(t, last.Lock)
	await.InLine(t, first, 12)
	l.Hole()
	await.Release(t, g)
	// If each of them took a WaiterTimeout, that would be ten.
	await.Release(t, next.Within(t, 5*live))
	l.Heal()
	giveUp()
	nothingLeft(t, s)
}

var _ recipes.Lockable = (*fallback.Fair)(nil)
