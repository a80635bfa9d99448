package cost

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
)

const sessions = 8

// A line is a lock with a number of goroutines that wait for it, over several
// sessions, each queueing again as soon as it has held it.
type line struct {
	meter *Meter
	// acquire returns when goroutine i holds the lock, or ctx has ended.
	acquire func(ctx context.Context, i int) (release func() error, err error)
	waiting func() int // contenders in line now
}

// measure has n goroutines wait in line, lets the lock be handed over times
// times, and returns what that cost.
func (l *line) measure(t testing.TB, n, times int) (Count, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, err := l.acquire(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	var granted atomic.Int64
	var cost Count
	var took time.Duration
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for {
				release, err := l.acquire(ctx, i)
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				if granted.Add(1) == int64(times) {
					cost, took = l.meter.Take(), time.Since(begin)
					cancel()
				}
				if err := release(); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for l.waiting() != n+1 { // all in line, behind the first
		if ctx.Err() != nil {
			t.Fatal("not all came to wait")
		}
	}
	l.meter.Take()
	begin = time.Now()
	if err := first(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	return cost, took
}

func ours(t testing.TB, servers []string) *line {
	m := &Meter{}
	locks := make([]*mutex.Mutex, sessions)
	path := "/cost/" + t.Name()
	for i := range locks {
		s, err := session.Open(t.Context(), session.Config{Servers: servers, Timeout: 30 * time.Second, Dial: m.Dial})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if locks[i], err = mutex.New(s, path); err != nil {
			t.Fatal(err)
		}
	}
	look := watcher(t, servers)
	return &line{
		meter: m,
		acquire: func(ctx context.Context, i int) (func() error, error) {
			g, err := locks[i%sessions].Lock(ctx)
			if err != nil {
				return nil, err
			}
			return func() error { return g.Release(context.Background()) }, nil
		},
		waiting: func() int { return look(path) },
	}
}

// theirs is the client's own lock, for comparison.
func theirs(t testing.TB, servers []string) *line {
	m := &Meter{}
	conns := make([]*zk.Conn, sessions)
	path := "/cost/" + t.Name()
	for i := range conns {
		c, events, err := zk.Connect(servers, 30*time.Second, zk.WithDialer(m.DialTimeout), zk.WithLogInfo(false))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Close()
			for range events {
			}
		})
		conns[i] = c
	}
	look := watcher(t, servers)
	return &line{
		meter: m,
		acquire: func(ctx context.Context, i int) (func() error, error) {
			l := zk.NewLock(conns[i%sessions], path, zk.WorldACL(zk.PermAll))
			if err := ctx.Err(); err != nil { // it knows no context: it queues, or it does not
				return nil, err
			}
			return l.Unlock, l.Lock()
		},
		waiting: func() int { return look(path) },
	}
}

// watcher counts the children of a path on a connection of its own.
func watcher(t testing.TB, servers []string) func(path string) int {
	c, events, err := zk.Connect(servers, 30*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		for range events {
		}
	})
	return func(path string) int {
		_, stat, err := c.Exists(path)
		if err != nil {
			t.Fatal(err)
		}
		return int(stat.NumChildren)
	}
}

// case 26: what a hand-over costs does not depend on how many wait.
func TestHandOverCostIsFlat(t *testing.T) {
	e := ensemble.Single(t, ensemble.Options{})
	const times = 200
	var least, most float64
	for _, n := range []int{2, 16, 128, 1000} {
		t.Run(fmt.Sprintf("waiters=%d", n), func(t *testing.T) {
			c, _ := ours(t, e.Servers()).measure(t, n, times)
			bytes := float64(c.BytesIn) / times
			t.Logf("%.1f bytes received, %.2f requests, %.2f wake-ups per hand-over; by operation: %v",
				bytes, float64(c.Requests)/times, float64(c.WakeUps)/times, c.ByOp)
			if listings := c.ByOp[OpChildren] + c.ByOp[OpChildren2]; listings != 0 {
				t.Errorf("the directory was listed %d times: want never, with nobody dying", listings)
			}
			if least == 0 || bytes < least {
				least = bytes
			}
			most = max(most, bytes)
		})
	}
	if most > 1.1*least {
		t.Errorf("between %.0f and %.0f bytes received per hand-over: want the same within 10 %%", least, most)
	}
}

// BenchmarkHandOver hands one lock round among waiters on a real server. The
// time is for the whole of a hand-over; compare it within one run only.
func BenchmarkHandOver(b *testing.B) {
	e := ensemble.Single(b, ensemble.Options{})
	for _, n := range []int{2, 16, 128, 1000} {
		for _, lock := range []struct {
			name string
			line func(testing.TB, []string) *line
		}{{"lockkeeper", ours}, {"go-zookeeper", theirs}} {
			b.Run(fmt.Sprintf("%s/waiters=%d", lock.name, n), func(b *testing.B) {
				c, took := lock.line(b, e.Servers()).measure(b, n, b.N)
				per := func(v int64) float64 { return float64(v) / float64(b.N) }
				b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/op")
				b.ReportMetric(per(c.Requests), "requests/op")
				b.ReportMetric(per(c.BytesIn), "bytes/op")
				b.ReportMetric(per(c.WakeUps), "wakeups/op")
			})
		}
	}
}
