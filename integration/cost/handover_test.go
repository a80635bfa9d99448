package cost

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
)

const sessions = 8

// A line is a lock and those who wait for it, over several sessions.
type line struct {
	meter *Meter
	// acquire returns when goroutine i holds the lock.
	acquire func(i int) (release func() error, err error)
	waiting func() int // contenders in line now
}

// measure lets n goroutines queue behind a holder, then the lock go through all of
// them, and that again until it has been handed over times times or a few more.
// It returns what all of it cost, from their queueing to their releases.
func (l *line) measure(t testing.TB, n, times int) (cost Count, handOvers int, took time.Duration) {
	t.Helper()
	for i := range sessions { // each learns once where it is
		release, err := l.acquire(i)
		if err == nil {
			err = release()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for handOvers < times {
		first, err := l.acquire(0)
		if err != nil {
			t.Fatal(err)
		}
		l.meter.Take()
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				release, err := l.acquire(i)
				if err == nil {
					err = release()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		for l.waiting() != n+1 && !t.Failed() {
			runtime.Gosched()
		}
		begin := time.Now()
		if err := first(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		took += time.Since(begin)
		cost = cost.plus(l.meter.Take())
		handOvers += n
	}
	return cost, handOvers, took
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
		acquire: func(i int) (func() error, error) {
			g, err := locks[i%sessions].Lock(t.Context())
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
		acquire: func(i int) (func() error, error) {
			l := zk.NewLock(conns[i%sessions], path, zk.WorldACL(zk.PermAll))
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
			c, handOvers, _ := ours(t, e.Servers()).measure(t, n, times)
			per := func(v int64) float64 { return float64(v) / float64(handOvers) }
			bytes := per(c.BytesIn)
			t.Logf("%.1f bytes received, %.2f requests, %.2f wake-ups per hand-over; by operation: %v",
				bytes, per(c.Requests), per(c.WakeUps), c.ByOp)
			// Whoever waits for long, on a slow machine, also watches its own node,
			// which is one more read and one more event.
			long := max(0, c.ByOp[opGetData]-3*handOvers)
			if wakeUps := int(c.WakeUps) - long; wakeUps > handOvers+handOvers/100 {
				t.Errorf("%d wake-ups for %d hand-overs: want one each", wakeUps, handOvers)
			}
			if listings := c.ByOp[OpChildren] + c.ByOp[OpChildren2]; listings != 0 {
				t.Errorf("the directory was listed %d times: want never, with nobody dying", listings)
			}
			if least == 0 || bytes < least {
				least = bytes
			}
			most = max(most, bytes)
		})
	}
	// On a slow machine the own nodes that are watched show here, too. A cost that is
	// not flat is a hundred times as much with so many waiters.
	if most > 1.5*least {
		t.Errorf("between %.0f and %.0f bytes received per hand-over: want them much the same", least, most)
	}
}

// BenchmarkHandOver hands one lock round among waiters on a real server. The
// time is that from one release to the next; compare it within one run only.
func BenchmarkHandOver(b *testing.B) {
	e := ensemble.Single(b, ensemble.Options{})
	for _, n := range []int{2, 16, 128, 1000} {
		for _, lock := range []struct {
			name string
			line func(testing.TB, []string) *line
		}{{"lockkeeper", ours}, {"go-zookeeper", theirs}} {
			b.Run(fmt.Sprintf("%s/waiters=%d", lock.name, n), func(b *testing.B) {
				c, handOvers, took := lock.line(b, e.Servers()).measure(b, n, b.N)
				per := func(v int64) float64 { return float64(v) / float64(handOvers) }
				b.ReportMetric(per(took.Nanoseconds()), "ns/op")
				b.ReportMetric(per(c.Requests), "requests/op")
				b.ReportMetric(per(c.BytesIn), "bytes/op")
				b.ReportMetric(per(c.WakeUps), "wakeups/op")
			})
		}
	}
}
