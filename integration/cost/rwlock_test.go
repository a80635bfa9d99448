package cost

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/session"
)

func rwlocks(t testing.TB, n int, m *Meter, servers []string, path string) []*rwlock.RWLock {
	t.Helper()
	locks := make([]*rwlock.RWLock, n)
	for i := range locks {
		cfg := session.Config{Servers: servers, Timeout: 30 * time.Second}
		if m != nil {
			cfg.Dial = m.Dial
		}
		s, err := session.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if locks[i], err = rwlock.New(s, path); err != nil {
			t.Fatal(err)
		}
	}
	return locks
}

// BenchmarkReadMostly has 16 goroutines, over 8 sessions, take and give up a
// read/write lock, nine times out of ten to read.
func BenchmarkReadMostly(b *testing.B) {
	e := ensemble.Single(b, ensemble.Options{})
	m := &Meter{}
	locks := rwlocks(b, sessions, m, e.Servers(), "/cost/read-mostly")
	const goroutines = 16
	work := func(i, n int) error {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		l := locks[i%sessions]
		for range n {
			lock := l.RLock
			if rnd.IntN(10) == 0 {
				lock = l.Lock
			}
			g, err := lock(b.Context())
			if err == nil {
				err = g.Release(context.Background())
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for i := range goroutines { // each session learns once where it is
		if err := work(i, 1); err != nil {
			b.Fatal(err)
		}
	}
	m.Take()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			if err := work(i, b.N/goroutines+1); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	ops := float64(goroutines * (b.N/goroutines + 1))
	c := m.Take()
	b.ReportMetric(float64(c.Requests)/ops, "requests/op")
	b.ReportMetric(float64(c.BytesIn)/ops, "bytes/op")
	b.ReportMetric(float64(c.WakeUps)/ops, "wakeups/op")
	b.ReportMetric(float64(c.ByOp[OpChildren]+c.ByOp[OpChildren2])/ops, "listings/op")
}

// A leaving is an order in which readers leave: the next of those that are left.
type leaving struct {
	name string
	next func(left int) int
}

func leavings() []leaving {
	rnd := rand.New(rand.NewPCG(1, 1))
	return []leaving{
		{"first-first", func(left int) int { return 0 }},
		{"last-first", func(left int) int { return left - 1 }},
		{"at-random", func(left int) int { return rnd.IntN(left) }},
	}
}

// behind lets a writer queue behind n readers, and the readers leave one by one, each
// when the writer has taken notice of the one before. It returns what the writer's
// session cost, until it held.
func behind(t testing.TB, servers []string, path string, n int, how leaving, writer func(m *Meter) func() error) Count {
	t.Helper()
	readers := rwlocks(t, 4, nil, servers, path)
	held := make([]*recipes.Grant, n)
	for i := range held {
		g, err := readers[i%len(readers)].RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held[i] = g
	}
	m := &Meter{}
	lock := writer(m)
	m.Take()
	got := make(chan error, 1)
	go func() { got <- lock() }()
	var total Count
	// quiet waits until the writer has asked for nothing more for a while.
	quiet := func() {
		for idle := 0; idle < 3; idle++ {
			time.Sleep(time.Millisecond)
			if c := m.Take(); c.Requests > 0 || c.WakeUps > 0 {
				total = total.plus(c)
				idle = 0
			}
		}
	}
	look := watcher(t, servers)
	for look(path) != n+1 {
		time.Sleep(time.Millisecond)
	}
	for len(held) > 0 {
		quiet()
		i := how.next(len(held))
		if err := held[i].Release(context.Background()); err != nil {
			t.Fatal(err)
		}
		held = slices.Delete(held, i, i+1)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	return total.plus(m.Take())
}

// ourWriter is the write side of our lock.
func ourWriter(t testing.TB, servers []string, path string) func(m *Meter) func() error {
	return func(m *Meter) func() error {
		l := rwlocks(t, 1, m, servers, path)[0]
		return func() error {
			g, err := l.Lock(t.Context())
			if err == nil {
				err = g.Release(context.Background())
			}
			return err
		}
	}
}

// listingWriter is a writer by the letter of the recipe: whenever the one before it
// has gone, it lists the directory.
func listingWriter(t testing.TB, servers []string, path string) func(m *Meter) func() error {
	return func(m *Meter) func() error {
		c, events, err := zk.Connect(servers, 30*time.Second, zk.WithDialer(m.DialTimeout), zk.WithLogInfo(false))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Close()
			for range events {
			}
		})
		if _, _, err := c.Exists(path); err != nil {
			t.Fatal(err)
		}
		return func() error {
			own, err := c.Create(path+"/plain-__WRIT__", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
			if err != nil {
				return err
			}
			number := func(name string) string { return name[len(name)-10:] }
			for {
				names, _, err := c.Children(path)
				if err != nil {
					return err
				}
				slices.SortFunc(names, func(a, b string) int { return strings.Compare(number(a), number(b)) })
				i := slices.Index(names, own[len(path)+1:])
				if i == 0 {
					return c.Delete(own, -1)
				}
				_, _, gone, err := c.GetW(path + "/" + names[i-1])
				if err == nil {
					<-gone
				}
			}
		}
	}
}

// BenchmarkWriterBehindReaders is what a writer pays that queues behind readers, and
// beside it what it would pay if it listed the queue for each reader.
func BenchmarkWriterBehindReaders(b *testing.B) {
	e := ensemble.Single(b, ensemble.Options{})
	for _, n := range []int{1, 100, 1000} {
		for _, how := range leavings() {
			if n == 1 && how.name != "first-first" {
				continue
			}
			for name, writer := range map[string]func(testing.TB, []string, string) func(*Meter) func() error{
				"lockkeeper": ourWriter, "lists-for-each": listingWriter,
			} {
				b.Run(fmt.Sprintf("readers=%d/%s/%s", n, how.name, name), func(b *testing.B) {
					path := "/cost/" + strings.ReplaceAll(b.Name(), "/", "-")
					var c Count
					for range b.N {
						c = c.plus(behind(b, e.Servers(), path, n, how, writer(b, e.Servers(), path)))
					}
					per := func(v int64) float64 { return float64(v) / float64(b.N) }
					b.ReportMetric(0, "ns/op") // mostly the time between departures
					b.ReportMetric(per(c.Requests), "requests/op")
					b.ReportMetric(per(c.BytesIn), "bytes/op")
					b.ReportMetric(per(c.WakeUps), "wakeups/op")
					b.ReportMetric(float64(c.ByOp[OpChildren]+c.ByOp[OpChildren2])/float64(b.N), "listings/op")
				})
			}
		}
	}
}

// A writer behind many readers lists the queue a few times, not once for each.
func TestWriterBehindManyReaders(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	const n = 200
	for _, how := range leavings() {
		t.Run(how.name, func(t *testing.T) {
			path := "/cost/behind-" + how.name
			c := behind(t, e.Servers(), path, n, how, ourWriter(t, e.Servers(), path))
			listings := c.ByOp[OpChildren] + c.ByOp[OpChildren2]
			t.Logf("%d requests, %d bytes received, %d wake-ups, %d listings", c.Requests, c.BytesIn, c.WakeUps, listings)
			if listings > 8 || c.Requests > 2*n+20 || c.WakeUps > n+3 {
				t.Errorf("%d requests, %d wake-ups, %d listings", c.Requests, c.WakeUps, listings)
			}
		})
	}
}
