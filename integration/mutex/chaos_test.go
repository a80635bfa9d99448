package mutex_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/integration/history"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
)

// seedEnv chooses the faults of TestHistoryUnderFaults, to have them once more.
const seedEnv = "LOCKKEEPER_TEST_SEED"

// member is a client with links of its own to all servers.
type member struct {
	links []*link.Link
	mutex *mutex.Mutex
}

func newMember(t *testing.T, e *ensemble.Ensemble, path string, timeout time.Duration) *member {
	m := &member{}
	var addrs []string
	for _, server := range e.Servers() {
		l := link.New(t, server)
		m.links = append(m.links, l)
		addrs = append(addrs, l.Addr())
	}
	m.mutex = newMutex(t, ensemble.Open(t, timeout, addrs...), path)
	return m
}

// all does the same to every link.
func (m *member) all(do func(*link.Link)) {
	for _, l := range m.links {
		do(l)
	}
}

// compete takes the lock and gives it up until stop is closed. A wait that takes
// too long is given up, which is part of the history too.
func (m *member) compete(ctx context.Context, r *history.Recorder, id int, rng *rand.Rand, stop <-chan struct{}) (givenUp int) {
	for {
		select {
		case <-stop:
			return givenUp
		case <-ctx.Done():
			return givenUp
		default:
		}
		wait, cancel := context.WithTimeout(ctx, 100*time.Millisecond+time.Duration(rng.Int64N(int64(10*time.Second))))
		g, err := r.Acquire(wait, id, m.mutex.Lock)
		cancel()
		if err != nil {
			givenUp++
			continue
		}
		hold := time.NewTimer(time.Duration(rng.Int64N(int64(5 * time.Millisecond))))
		if rng.IntN(50) == 0 { // now and then long enough to be lost
			hold.Reset(4 * time.Second)
		}
		select {
		case <-hold.C:
		case <-g.Done():
		}
		hold.Stop()
		done, cancel := context.WithTimeout(ctx, time.Second)
		g.Release(done) // what comes of it is in the history
		cancel()
	}
}

// TestHistoryUnderFaults has clients compete while their links and the servers
// fail at random, and checks the history of what they saw.
func TestHistoryUnderFaults(t *testing.T) {
	const clients, timeout = 5, 2 * time.Second
	duration := 40 * time.Second
	if testing.Short() {
		duration = 10 * time.Second
	}
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv(seedEnv), 10, 64); err == nil {
		seed = s
	}
	t.Logf("%s=%d", seedEnv, seed)
	rng := rand.New(rand.NewPCG(seed, 0))

	e := ensemble.Three(t, ensemble.Options{})
	path := e.LockPath(t)
	r := history.New(t)
	var (
		members []*member
		wg      sync.WaitGroup
		stop    = make(chan struct{})
		givenUp atomic.Int64
	)
	for id := range clients {
		m := newMember(t, e, path, timeout)
		members = append(members, m)
		wg.Go(func() {
			n := m.compete(t.Context(), r, id, rand.New(rand.NewPCG(seed, uint64(id+1))), stop)
			givenUp.Add(int64(n))
		})
	}
	for end := time.Now().Add(duration); time.Now().Before(end); {
		fault := faults[rng.IntN(len(faults))]
		before := r.Grants()
		fault.do(t, e, members[rng.IntN(clients)], rng)
		t.Logf("%s: %d grants meanwhile", fault.name, r.Grants()-before)
	}
	e.WaitReady(t)
	close(stop)
	wg.Wait()
	r.Check()
	t.Logf("%d waits were given up", givenUp.Load())

	// Everybody can still have the lock, now that there are no faults.
	for id, m := range members {
		g, err := r.Acquire(await.Context(t), id, m.mutex.Lock)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Release(await.Context(t)); err != nil && !errors.Is(err, recipes.ErrRevoked) {
			t.Error(err)
		}
	}
	r.Check()
}

// nap lasts for up to d.
func nap(rng *rand.Rand, d time.Duration) { time.Sleep(time.Duration(rng.Int64N(int64(d)))) }

// faults begin, last for a while, and end, before do returns.
var faults = []struct {
	name string
	do   func(t *testing.T, e *ensemble.Ensemble, m *member, rng *rand.Rand)
}{
	{"connection broken", func(t *testing.T, e *ensemble.Ensemble, m *member, rng *rand.Rand) {
		m.all((*link.Link).Cut)
		nap(rng, 500*time.Millisecond)
	}},
	{"connection broken many times", func(t *testing.T, e *ensemble.Ensemble, m *member, rng *rand.Rand) {
		for range 30 {
			m.all((*link.Link).Cut)
			nap(rng, 20*time.Millisecond)
		}
	}},
	{"client in a hole", func(t *testing.T, e *ensemble.Ensemble, m *member, rng *rand.Rand) {
		m.all((*link.Link).Hole)
		nap(rng, 4*time.Second)
		m.all((*link.Link).Heal)
	}},
	{"answers lost", func(t *testing.T, e *ensemble.Ensemble, m *member, rng *rand.Rand) {
		m.all((*link.Link).HoleDown)
		nap(rng, 4*time.Second)
		m.all((*link.Link).Cut)
		m.all((*link.Link).Heal)
	}},
	{"client refused", func(t *testing.T, e *ensemble.Ensemble, m *member, rng *rand.Rand) {
		m.all((*link.Link).Refuse)
		nap(rng, 4*time.Second)
		m.all((*link.Link).Heal)
	}},
	{"one link of three in a hole", func(t *testing.T, e *ensemble.Ensemble, m *member, rng *rand.Rand) {
		l := m.links[rng.IntN(len(m.links))]
		l.Hole()
		nap(rng, 4*time.Second)
		l.Heal()
	}},
	{"server killed", func(t *testing.T, e *ensemble.Ensemble, m *member, rng *rand.Rand) {
		i := rng.IntN(3)
		e.Kill(t, i)
		nap(rng, 2*time.Second)
		e.Start(t, i)
		e.WaitReady(t)
	}},
	{"leader killed", func(t *testing.T, e *ensemble.Ensemble, m *member, rng *rand.Rand) {
		i := e.Leader(t)
		e.Kill(t, i)
		nap(rng, 2*time.Second)
		e.Start(t, i)
		e.WaitReady(t)
	}},
	{"server paused", func(t *testing.T, e *ensemble.Ensemble, m *member, rng *rand.Rand) {
		i := rng.IntN(3)
		e.Pause(t, i)
		nap(rng, 4*time.Second)
		e.Unpause(t, i)
		e.WaitReady(t)
	}},
	{"server cut off from the others", func(t *testing.T, e *ensemble.Ensemble, m *member, rng *rand.Rand) {
		i := rng.IntN(3)
		e.CutFromPeers(t, i)
		nap(rng, 4*time.Second)
		e.Heal(t, i)
		e.WaitReady(t)
	}},
}
