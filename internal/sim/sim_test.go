package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	first    = flag.Uint64("sim.seed", 1, "the first `seed`")
	seeds    = flag.Int("sim.seeds", 18, "how many seeds")
	length   = flag.Duration("sim.length", 3*time.Minute, "virtual time with faults of each seed")
	budget   = flag.Duration("sim.budget", 0, "stop beginning new seeds after that much real time")
	only     = flag.String("sim.only", "", "the `kind` of lock that is used")
	busy     = flag.Bool("sim.busy", false, "clients and adversary are as busy as they ever are")
	repeat   = flag.Bool("sim.repeat", false, "run the first seed each time")
	progress = flag.Duration("sim.progress", 0, "how often to tell how far it is")
)

// TestSimulation runs the seeds that the flags ask for, as many at a time as there
// are processors. (Case 86; and case 74, in every attempt.)
func TestSimulation(t *testing.T) {
	var next, done, grants, faults, requests atomic.Int64
	var virtual atomic.Int64
	began := time.Now()
	tell := func() string {
		took := time.Since(began)
		return fmt.Sprintf("%d seeds, %.1f virtual hours in %v (%.2f seeds per second): %d grants, %d faults, %d requests",
			done.Load(), time.Duration(virtual.Load()).Hours(), took.Round(time.Second), float64(done.Load())/took.Seconds(),
			grants.Load(), faults.Load(), requests.Load())
	}
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				n := next.Add(1) - 1
				if n >= int64(*seeds) || *budget > 0 && time.Since(began) > *budget || t.Failed() {
					return
				}
				o := Options{Seed: *first + uint64(n), Length: *length, Only: *only, Busy: *busy}
				if *repeat {
					o.Seed = *first
				}
				r := Run(t, o)
				if len(r.Violations) > 0 {
					t.Errorf("seed %d:\n%v", r.Seed, r)
				}
				done.Add(1)
				grants.Add(int64(r.Grants))
				faults.Add(int64(r.Faults))
				requests.Add(int64(r.Requests))
				virtual.Add(int64(r.Virtual))
			}
		})
	}
	if *progress > 0 {
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				select {
				case <-time.After(*progress):
					fmt.Fprintln(os.Stderr, tell())
				case <-stop:
					return
				}
			}
		}()
	}
	wg.Wait()
	t.Log(tell())
}
