package fallback_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/history"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/integration/witness"
	"github.com/lockkeeper/lockkeeper/integration/worker"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// seedEnv chooses the faults of TestHistoryUnderFaults, to have them once more.
const seedEnv = "LOCKKEEPER_TEST_SEED"

// TestHistoryUnderFaults has clients compete while their links and the server fail at
// random, short of losing what is on it, and checks the history of what they saw.
func TestHistoryUnderFaults(t *testing.T) {
	const clients, ttl = 5, time.Second
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv(seedEnv), 10, 64); err == nil {
		seed = s
	}
	t.Logf("%s=%d", seedEnv, seed)
	rng := rand.New(rand.NewPCG(seed, 0))

	s := redistest.Borrow(t)
	noneLeft(t, s)
	r := history.New(t)
	var (
		links   []*link.Link
		mutexes []*fallback.Mutex
		wg      sync.WaitGroup
		stop    = make(chan struct{})
	)
	for id := range clients {
		l := link.New(t, s.Addr())
		m := client(t, l.Addr(), fallback.TTL(ttl), fallback.WaiterTimeout(ttl))
		links, mutexes = append(links, l), append(mutexes, m)
		wg.Go(func() { compete(t, r, id, m, rand.New(rand.NewPCG(seed, uint64(id+1))), stop) })
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		fault := faults[rng.IntN(len(faults))]
		before := r.Grants()
		fault.do(t, s, links[rng.IntN(clients)], rng)
		t.Logf("%s: %d grants meanwhile", fault.name, r.Grants()-before)
	}
	close(stop)
	wg.Wait()
	r.Check()

	// Everybody can still have the lock, now that there are no faults.
	for id, m := range mutexes {
		g, err := r.Acquire(await.Context(t), id, m.Lock)
		if err != nil {
			t.Fatal(err)
		}
		await.Release(t, g)
	}
	r.Check()
}

// compete takes the lock and gives it up until stop is closed. A wait that takes
// too long is given up, which is part of the history too.
func compete(t *testing.T, r *history.Recorder, id int, m *fallback.Mutex, rng *rand.Rand, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		wait, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond+time.Duration(rng.Int64N(int64(4*time.Second))))
		g, err := r.Acquire(wait, id, m.Lock)
		cancel()
		if err != nil {
			continue
		}
		hold := time.NewTimer(time.Duration(rng.Int64N(int64(5 * time.Millisecond))))
		if rng.IntN(50) == 0 { // now and then long enough to be renewed, or lost
			hold.Reset(1500 * time.Millisecond)
		}
		select {
		case <-hold.C:
		case <-g.Done():
		}
		hold.Stop()
		done, cancel := context.WithTimeout(t.Context(), time.Second)
		g.Release(done) // what comes of it is in the history
		cancel()
	}
}

// nap lasts for up to d.
func nap(rng *rand.Rand, d time.Duration) { time.Sleep(time.Duration(rng.Int64N(int64(d)))) }

// faults begin, last for a while, and end, before do returns.
var faults = []struct {
	name string
	do   func(t *testing.T, s *redistest.Server, l *link.Link, rng *rand.Rand)
}{
	{"connections broken", func(_ *testing.T, _ *redistest.Server, l *link.Link, rng *rand.Rand) {
		for range 10 {
			l.Cut()
			nap(rng, 20*time.Millisecond)
		}
	}},
	{"an answer lost", func(_ *testing.T, _ *redistest.Server, l *link.Link, rng *rand.Rand) {
		l.LoseAnswer(script)
		nap(rng, 300*time.Millisecond)
		l.Heal()
	}},
	{"an answer late", func(_ *testing.T, _ *redistest.Server, l *link.Link, rng *rand.Rand) {
		l.HoldAnswer(script)
		nap(rng, 2*time.Second)
		l.Heal()
	}},
	{"a request late", func(_ *testing.T, _ *redistest.Server, l *link.Link, rng *rand.Rand) {
		l.HoldRequest(script)
		nap(rng, 2*time.Second)
		l.Heal()
	}},
	{"client in a hole", func(_ *testing.T, _ *redistest.Server, l *link.Link, rng *rand.Rand) {
		l.Hole()
		nap(rng, 2*time.Second)
		l.Heal()
	}},
	{"answers in a hole", func(_ *testing.T, _ *redistest.Server, l *link.Link, rng *rand.Rand) {
		l.HoleDown()
		nap(rng, 2*time.Second)
		l.Cut()
		l.Heal()
	}},
	{"client refused", func(_ *testing.T, _ *redistest.Server, l *link.Link, rng *rand.Rand) {
		l.Refuse()
		nap(rng, 2*time.Second)
		l.Heal()
	}},
	{"server hangs", func(t *testing.T, s *redistest.Server, _ *link.Link, rng *rand.Rand) {
		s.Pause(t)
		nap(rng, 2*time.Second)
		s.Unpause(t)
	}},
	{"server writes nothing", func(t *testing.T, s *redistest.Server, _ *link.Link, rng *rand.Rand) {
		s.PauseWrites(t, time.Minute)
		nap(rng, 2*time.Second)
		s.ResumeWrites(t)
	}},
	{"subscribers killed, scripts flushed", func(t *testing.T, s *redistest.Server, _ *link.Link, rng *rand.Rand) {
		for range 10 {
			s.KillSubscribers(t)
			s.FlushScripts(t)
			nap(rng, 20*time.Millisecond)
		}
	}},
}

// Processes that use a lock are killed at random and replaced by others. A witness
// sees that no two are in at once, and that tokens rise. R16, R27, R36
func TestProcessesAreKilled(t *testing.T) {
	t.Parallel() // it waits, most of the time
	const processes, kills = 3, 6
	s := redistest.Borrow(t)
	w := witness.New(t)
	start := func() *worker.Process {
		return worker.Start(t, worker.Job{
			Servers: []string{s.Addr()}, Path: key(t), Witness: w.Addr(), Timeout: time.Second,
			Sessions: 2, Clients: 2, Cycles: 1 << 30, Patience: await.Patience,
		})
	}
	var running []*worker.Process
	for range processes {
		running = append(running, start())
	}
	for i := range kills {
		for range 20 * processes { // everybody is at work
			select {
			case <-w.Entered():
			case <-await.Context(t).Done():
				t.Fatal("the lock is stuck")
			}
		}
		victim := i % processes
		running[victim].Kill()
		running[victim] = start()
	}
	for _, p := range running {
		p.Kill()
	}
	t.Logf("the lock was had %d times", w.Uses())
	m := client(t, s.Addr())
	g := await.Grant(t, m.Lock)
	v, err := witness.Visit(w.Addr())
	ok(t, err)
	defer v.Close()
	ok(t, v.Enter(g.Token()))
	ok(t, v.Leave())
	await.Release(t, g)
	if _, err := m.TryLock(await.Context(t)); errors.Is(err, recipes.ErrBusy) {
		t.Error(err)
	}
}
