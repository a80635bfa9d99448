package fallback_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
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

// acquireLater is an acquisition that goes on while the test does something else.
func acquireLater(t *testing.T, acquire func(context.Context) (*recipes.Grant, error)) *later {
	t.Helper()
	l, ctx := &later{grant: make(chan *recipes.Grant, 1)}, bounded(t)
	go func() {
		var g *recipes.Grant
		g, l.err = acquire(ctx)
		l.grant <- g
	}()
	return l
}

// acquired is an acquisition that the test waits for.
func acquired(t *testing.T, acquire func(context.Context) (*recipes.Grant, error)) *recipes.Grant {
	t.Helper()
	return acquireLater(t, acquire).get(t)
}

// lined waits until n contenders are in line, the holders included.
func lined(t *testing.T, l interface {
	Contenders(context.Context) ([]recipes.Contender, error)
}, n int) {
	t.Helper()
	eventually(t, "the line to be as long as it should", func() bool {
		c, err := l.Contenders(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		return len(c) == n
	})
}

// The release of a writer lets in all ten readers at the head, by itself. R32
func TestReleaseLetsAllReadersIn(t *testing.T) {
	s := redistest.Start(t)
	noneLeft(t, s)
	w, r := rwlock(t, s.Addr(), byTimer(), fallback.TTL(time.Hour)), rwlock(t, s.Addr(), byTimer(), fallback.TTL(time.Hour))
	g := acquired(t, w.Lock)
	var readers []*later
	for range 10 {
		readers = append(readers, acquireLater(t, r.RLock))
	}
	lined(t, w, 11)
	counts := s.Counts(t)
	release(t, g)
	var grants []*recipes.Grant
	for _, l := range readers {
		grants = append(grants, l.within(t, soon))
	}
	if n := s.Counts(t).Since(counts).Of("publish"); n != 10 {
		t.Errorf("%d messages for 10 readers", n)
	}
	release(t, grants...)
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
		grants = append(grants, acquired(t, rwlock(t, l.Addr(), fallback.TTL(ttl)).RLock))
	}
	other := rwlock(t, s.Addr())
	writer := acquireLater(t, other.Lock)
	lined(t, other, 3)
	links[1].Hole()
	ended(t, grants[1], recipes.ErrSessionLost)
	eventually(t, "the dead reader to be forgotten", func() bool {
		c, err := other.Contenders(bounded(t))
		return err == nil && len(c) == 2
	})
	stands(t, grants[0])
	select {
	case <-writer.grant:
		t.Fatal("the writer is in beside a live reader")
	default:
	}
	links[0].Hole()
	g := writer.get(t)
	for _, r := range grants {
		ended(t, r, recipes.ErrSessionLost) // they knew before
	}
	release(t, g)
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
	release(t, acquired(t, other.Lock))

	lost := func(f func()) {
		t.Helper()
		trap := l.LoseAnswer(script)
		f()
		<-trap.Sprung()
	}
	var w, r *recipes.Grant
	lost(func() { w = acquired(t, near.Lock) })
	lost(func() {
		r = acquired(t, func(ctx context.Context) (*recipes.Grant, error) { return near.RLock(w.Context(ctx)) })
	})
	lined(t, other, 2)
	lost(func() { release(t, w) })
	stands(t, r)
	lost(func() { release(t, acquired(t, near.RLock)) })
	lined(t, other, 1)
	if _, err := other.TryLock(bounded(t)); !errors.Is(err, recipes.ErrBusy) {
		t.Fatalf("TryLock beside a reader: %v", err)
	}
	lost(func() { release(t, r) })
	release(t, acquired(t, other.Lock))
	nothingLeft(t, s)
}

// A full server: what is held is renewed, given up and handed over. R61
func TestReadersAndWritersOnAFullServer(t *testing.T) {
	s := redistest.Start(t)
	noneLeft(t, s)
	a, b := rwlock(t, s.Addr(), fallback.TTL(3*time.Second)), rwlock(t, s.Addr(), fallback.TTL(3*time.Second))
	g := acquired(t, a.Lock)
	reader, writer := acquireLater(t, b.RLock), acquireLater(t, b.Lock)
	lined(t, a, 3)
	s.Fill(t)
	before := g.Remaining()
	eventually(t, "a renewal", func() bool {
		now := g.Remaining()
		renewed := now > before
		before = now
		return renewed
	})
	stands(t, g)
	release(t, g)
	r := reader.within(t, soon)
	stands(t, r)
	release(t, r)
	release(t, writer.within(t, soon))
	nothingLeft(t, s)
	late := acquireLater(t, a.Lock)
	select {
	case g := <-late.grant:
		t.Fatalf("on a full server: %v, %v", g, late.err)
	case <-time.After(100 * time.Millisecond):
	}
	s.Empty(t)
	release(t, late.within(t, soon))
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
		g := acquired(t, rw.Lock)
		next := acquireLater(t, rwb.RLock)
		lined(t, rw, 2)
		release(t, g)
		release(t, next.get(t))

		sem, err := fallback.NewSemaphore(a, name, 2)
		if err != nil {
			t.Fatal(err)
		}
		semb, _ := fallback.NewSemaphore(b, name, 2)
		g = acquired(t, sem.Acquire)
		next = acquireLater(t, func(ctx context.Context) (*recipes.Grant, error) { return semb.AcquireN(ctx, 2) })
		lined(t, sem, 2)
		release(t, g)
		release(t, next.get(t))
	}
}
