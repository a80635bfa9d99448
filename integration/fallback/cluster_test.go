package fallback_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/history"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// member opens a client of the cluster.
func member(t *testing.T, c *redistest.Cluster, opts ...recipes.Option) *fallback.Client {
	t.Helper()
	rdb := redis.NewClusterClient(c.Options())
	t.Cleanup(func() { rdb.Close() })
	return open(t, rdb, opts...)
}

func TestCluster(t *testing.T) {
	c := redistest.StartCluster(t)
	noneLeft(t, c.Servers...)
	t.Run("AnyName", func(t *testing.T) { testAnyName(t, c) })
	t.Run("ManyLocks", func(t *testing.T) { testLocksOfAllSlots(t, c) })
	t.Run("SlotMoves", func(t *testing.T) { testSlotMoves(t, c) })
	t.Run("SlotMovesUnderLoad", func(t *testing.T) { testSlotMovesUnderLoad(t, c) })
	t.Run("ScriptsAreFlushed", func(t *testing.T) {
		m := newMutex(t, member(t, c, fallback.TTL(time.Minute)), key(t))
		g := await.Grant(t, m.Lock)
		for _, s := range c.Servers {
			s.FlushScripts(t)
		}
		stands(t, g)
		await.Release(t, g)
	})
}

// All keys of a lock are in one slot, whatever its name is. R58
func testAnyName(t *testing.T, c *redistest.Cluster) {
	a, b := member(t, c, byTimer()), member(t, c, byTimer())
	for _, name := range []string{
		"plain", "a{b}c", "{a", "a}", "}{", "{}", "{}{b}", "foo{}{bar}", "foo{{bar}}zap", "a%7Bb", "%", " ", "ä\x00\xff\n", "a:b", "}:lock",
		strings.Repeat("{", 500),
	} {
		x, y := newMutex(t, a, name), newMutex(t, b, name)
		g := await.Grant(t, x.Lock)
		next := await.Later(t, y.Lock)
		await.InLine(t, x, 2)
		slots := make(map[int][]string)
		for _, s := range c.Servers {
			for _, k := range s.Keys(t) {
				slot := c.Slot(t, k)
				slots[slot] = append(slots[slot], k)
			}
		}
		if len(slots) != 1 {
			t.Errorf("%q is in %d slots: %v", name, len(slots), slots)
		}
		await.Release(t, g)
		await.Release(t, next.Within(t, soon))
		for _, s := range c.Servers {
			s.Do(t, "FLUSHALL") // what would go by itself
		}
	}
	if _, err := fallback.NewMutex(a, ""); !errors.Is(err, recipes.ErrInvalid) {
		t.Errorf("no name: %v", err)
	}
}

// Renewals go to each server that has some of the locks.
func testLocksOfAllSlots(t *testing.T, c *redistest.Cluster) {
	lost := make(chan recipes.Revocation, 1000)
	a := member(t, c, fallback.TTL(6*time.Second), recipes.OnRevoke(func(r recipes.Revocation) { lost <- r }))
	grants := make([]*recipes.Grant, 300)
	all(t, len(grants), func(i int) error {
		m, err := fallback.NewMutex(a, fmt.Sprintf("%s/%d", key(t), i))
		if err == nil {
			grants[i], err = m.Lock(await.Context(t))
		}
		return err
	})
	before := make([]redistest.Counts, len(c.Servers))
	for i, s := range c.Servers {
		before[i] = s.Counts(t)
	}
	for i, s := range c.Servers { // each has a third or so; all of its are renewed twice
		await.Until(t, "renewals", func() bool { return s.Counts(t).Since(before[i]).Of("pexpire") > 2*len(grants)/3+50 })
	}
	if len(lost) > 0 {
		t.Errorf("lost: %+v", <-lost)
	}
	await.Release(t, grants...)
}

// The slot of a lock goes to another server while it is held and waited for: the hold
// is renewed there, the release hands over there, to one that was told. R34, R60
func testSlotMoves(t *testing.T, c *redistest.Cluster) {
	a, b := newMutex(t, member(t, c, byTimer(), fallback.TTL(3*time.Second)), key(t)), newMutex(t, member(t, c, byTimer()), key(t))
	slot := c.Slot(t, "lockkeeper:{"+key(t)+"}:lock")
	for range 3 { // once round
		g := await.Grant(t, a.Lock)
		next := await.Later(t, b.Lock)
		await.InLine(t, a, 2)
		src := c.Owner(t, slot)
		dst := (src + 1) % len(c.Servers)
		await.Until(t, "the next renewal to come near", func() bool { return pttl(t, c.Servers[src]) < 2300 })
		c.MoveSlot(t, slot, dst)
		await.Until(t, "a renewal at the new place", func() bool { return pttl(t, c.Servers[dst]) > 2500 })
		ok(t, g.Err())
		await.Release(t, g)
		second := next.Within(t, soon)
		rises(t, g, second)
		await.Release(t, second)
	}
}

// Clients compete for a lock whose slot is on the move all the time: its keys are not
// all at one place then, and requests are sent on, or refused for the moment.
func testSlotMovesUnderLoad(t *testing.T, c *redistest.Cluster) {
	r := history.New(t)
	slot := c.Slot(t, "lockkeeper:{"+key(t)+"}:lock")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for id := range 3 {
		m := newMutex(t, member(t, c), key(t))
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				g, err := r.Acquire(await.Context(t), id, m.Lock)
				if err == nil {
					err = g.Release(t.Context())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 9 {
		c.MoveSlotIn(t, slot, (c.Owner(t, slot)+1)%len(c.Servers), 30*time.Millisecond)
		before := r.Grants()
		await.Until(t, "grants at the new place", func() bool { return r.Grants() > before+3 || t.Failed() })
	}
	close(stop)
	wg.Wait()
	r.Check()
}
