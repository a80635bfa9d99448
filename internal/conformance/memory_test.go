package conformance_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockkeeper/lockkeeper/internal/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// locks are the shapes in which the lock in memory is tested.
var locks = map[string]conformance.Suite{
	"mutex": {Size: 1, Ways: []conformance.Way{{Name: "Lock", Takes: 1}}},
	"rwlock": {Size: conformance.Whole, Ways: []conformance.Way{
		{Name: "Lock", Takes: conformance.Whole}, {Name: "RLock", Takes: 1}}},
	"semaphore": {Size: 3, Ways: []conformance.Way{
		{Name: "Acquire", Takes: 1}, {Name: "Acquire2", Takes: 2}, {Name: "Acquire3", Takes: 3}}},
	"semaphore of ones": {Size: 3, Ways: []conformance.Way{{Name: "Acquire", Takes: 1}}},
}

// A lock that keeps its promises passes.
func TestCorrectLock(t *testing.T) {
	for name, suite := range locks {
		t.Run(name, func(t *testing.T) {
			suite.Backend = &backend{ways: suite.Ways, size: suite.Size}
			suite.Run(t)
		})
	}
}

// So it does in real time, where the suite can wait for events only.
func TestCorrectLockInRealTime(t *testing.T) {
	suite := locks["rwlock"]
	suite.Backend = &backend{ways: suite.Ways, size: suite.Size, real: true}
	suite.Run(t)
}

// A backend without any service: all is in memory.
type backend struct {
	ways  []conformance.Way
	size  int
	flaws flaws
	real  bool
}

func (b *backend) Run(t *testing.T, name string, f func(*testing.T, conformance.World)) {
	run := func(t *testing.T) {
		w := &world{b: b, t: t, s: newServer(b.size, b.lifetime(), b.flaws)}
		t.Cleanup(w.end)
		f(t, w)
	}
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		if b.real {
			run(t)
		} else {
			synctest.Test(t, run)
		}
	})
}

func (b *backend) lifetime() time.Duration {
	if b.real {
		return time.Second
	}
	return 10 * time.Second
}

type world struct {
	b *backend
	t *testing.T
	s *server

	mu      sync.Mutex
	clients []*client
}

func (w *world) end() {
	w.Heal()
	for _, c := range w.all() {
		c.Close()
	}
	w.Settle()
	if left, ok := w.s.until("x", 0, w.Patience()); !ok && !w.t.Failed() {
		w.t.Errorf("left after all clients were closed: %s", left)
	}
}

func (w *world) all() []*client {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*client(nil), w.clients...)
}

func (w *world) Client() conformance.Client {
	c := &client{w: w, s: w.s, life: newLife(), mended: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients = append(w.clients, c)
	return c
}

func (w *world) Queued(lock string, n int) (string, bool) {
	w.Settle()
	is, ok := w.s.until(lock, n, w.Patience())
	w.Settle()
	return is, ok
}

func (w *world) Empty(lock string) (string, bool) { return w.Queued(lock, 0) }

func (w *world) Settle() {
	if !w.b.real {
		synctest.Wait()
		return
	}
	for range 100 {
		runtime.Gosched()
	}
}

func (w *world) Pass(d time.Duration) {
	if w.b.real {
		runtime.Gosched()
	} else {
		time.Sleep(d)
	}
}

func (w *world) Patience() time.Duration { return time.Minute }

func (w *world) Short() time.Duration { return w.b.lifetime() / 4 }

func (w *world) Remove(lock string, i int) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.removeLocked(w.s.lines[lock][i], true)
}

func (w *world) RemoveAll(lock string) {
	w.s.clear(lock)
}

func (w *world) Heal() {
	for _, c := range w.all() {
		c.heal()
	}
}
