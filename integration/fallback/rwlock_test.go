package fallback_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/internal/redisconformance"
	"github.com/lockkeeper/lockkeeper/recipes"
)

func TestRWLockConformance(t *testing.T) {
	redisconformance.RWLock(redisconformance.Backend{
		Start:   borrowed,
		Options: []recipes.Option{fallback.TTL(time.Second), fallback.WaiterTimeout(time.Second)},
	}).Run(t)
}

// rwlock returns the test's lock on a client of its own.
func rwlock(t *testing.T, addr string, opts ...recipes.Option) *fallback.RWLock {
	t.Helper()
	l, err := fallback.NewRWLock(open(t, dial(t, addr)), key(t), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The release of a writer lets in all ten readers at the head, by itself. R32
func TestReleaseLetsAllReadersIn(t *testing.T) {
	s := redistest.Start(t)
	noneLeft(t, s)
	w, r := rwlock(t, s.Addr(), byTimer(), fallback.TTL(time.Hour)), rwlock(t, s.Addr(), byTimer(), fallback.TTL(time.Hour))
	g := await.Grant(t, w.Lock)
	var readers []*await.Attempt
	for range 10 {
		readers = append(readers, await.Later(t, r.RLock))
	}
	await.InLine(t, w, 11)
	counts := s.Counts(t)
	await.Release(t, g)
	var grants []*recipes.Grant
	for _, l := range readers {
		grants = append(grants, l.Within(t, soon))
	}
	if n := s.Counts(t).Since(counts).Of("publish"); n != 10 {
		t.Errorf("%d messages for 10 readers", n)
	}
	await.Release(t, grants...)
}

// Readers are cut off for good, on a server that removes dead keys only when they are
// touched. The writer waits for the last of them, and no longer. R43, R27
func TestReadersDie(t *testing.T) {
	s := redistest.Start(t)
	s.StopExpiring(t)
	var links []*link.Link
	var grants []*recipes.Grant
	for _, ttl := range []time.Duration{3 * time.Second, time.Second} {
		l := link.New(t, s.Addr())
		links = append(links, l)
		grants = append(grants, await.Grant(t, rwlock(t, l.Addr(), fallback.TTL(ttl)).RLock))
	}
	other := rwlock(t, s.Addr())
	writer := await.Later(t, other.Lock)
	await.InLine(t, other, 3)
	links[1].Hole()
	ended(t, grants[1], recipes.ErrSessionLost)
	await.Until(t, "the dead reader to be forgotten", func() bool {
		c, err := other.Contenders(await.Context(t))
		return err == nil && len(c) == 2
	})
	stands(t, grants[0])
	writer.Waits(t)
	links[0].Hole()
	g := writer.Grant(t)
	for _, r := range grants {
		ended(t, r, recipes.ErrSessionLost) // they knew before
	}
	await.Release(t, g)
	for _, l := range links {
		l.Heal()
	}
	nothingLeft(t, s)
}

// Answers get lost, one of each kind of request. What was asked for happens once. R01,
// R02, R07
func TestAnswersToReadersAndWritersAreLost(t *testing.T) {
	s := redistest.Start(t)
	noneLeft(t, s)
	l := link.New(t, s.Addr())
	near, other := rwlock(t, l.Addr()), rwlock(t, s.Addr())
	// the server has to know the scripts: what is lost below is not NOSCRIPT
	await.Release(t, await.Grant(t, other.Lock))

	lost := func(f func()) {
		t.Helper()
		trap := l.LoseAnswer(script)
		f()
		<-trap.Sprung()
	}
	var w, r *recipes.Grant
	lost(func() { w = await.Grant(t, near.Lock) })
	lost(func() {
		r = await.Grant(t, func(ctx context.Context) (*recipes.Grant, error) { return near.RLock(w.Context(ctx)) })
	})
	await.InLine(t, other, 2)
	lost(func() { await.Release(t, w) })
	stands(t, r)
	lost(func() { await.Release(t, await.Grant(t, near.RLock)) })
	await.InLine(t, other, 1)
	if _, err := other.TryLock(await.Context(t)); !errors.Is(err, recipes.ErrBusy) {
		t.Fatalf("TryLock beside a reader: %v", err)
	}
	lost(func() { await.Release(t, r) })
	await.Release(t, await.Grant(t, other.Lock))
	nothingLeft(t, s)
}

// A full server: what is held is renewed, given up and handed over. R61
func TestReadersAndWritersOnAFullServer(t *testing.T) {
	s := redistest.Start(t)
	noneLeft(t, s)
	a, b := rwlock(t, s.Addr(), fallback.TTL(3*time.Second)), rwlock(t, s.Addr(), fallback.TTL(3*time.Second))
	g := await.Grant(t, a.Lock)
	reader, writer := await.Later(t, b.RLock), await.Later(t, b.Lock)
	await.InLine(t, a, 3)
	s.Fill(t)
	before := g.Remaining()
	await.Until(t, "a renewal", func() bool {
		now := g.Remaining()
		renewed := now > before
		before = now
		return renewed
	})
	stands(t, g)
	await.Release(t, g)
	r := reader.Within(t, soon)
	stands(t, r)
	await.Release(t, r)
	await.Release(t, writer.Within(t, soon))
	nothingLeft(t, s)
	refused := s.Refused(t, "OOM")
	late := await.Later(t, a.Lock)
	await.Until(t, "Lock to try again", func() bool { return s.Refused(t, "OOM") >= refused+2 })
	late.Waits(t)
	s.Empty(t)
	await.Release(t, late.Within(t, soon))
}

// All keys of a lock lie in one slot, whatever its name is. R58
func TestAllKindsInACluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	rdb := redis.NewClusterClient(cluster.Options())
	t.Cleanup(func() { rdb.Close() })
	a, b := open(t, rdb), open(t, rdb)
	for _, name := range []string{"a{b}c", "}{", "{}", "\x00 %7B"} {
		rw, err := fallback.NewRWLock(a, name)
		if err != nil {
			t.Fatal(err)
		}
		rwb, _ := fallback.NewRWLock(b, name)
		g := await.Grant(t, rw.Lock)
		next := await.Later(t, rwb.RLock)
		await.InLine(t, rw, 2)
		await.Release(t, g)
		await.Release(t, next.Grant(t))

		sem, err := fallback.NewSemaphore(a, name, 2)
		if err != nil {
			t.Fatal(err)
		}
		semb, _ := fallback.NewSemaphore(b, name, 2)
		g = await.Grant(t, sem.Acquire)
		next = await.Later(t, func(ctx context.Context) (*recipes.Grant, error) { return semb.AcquireN(ctx, 2) })
		await.InLine(t, sem, 2)
		await.Release(t, g)
		await.Release(t, next.Grant(t))
	}
}
