//go:build lockkeeper_faults

package sim

import (
	"flag"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/internal/fault"
)

// injected has every fault, the kinds of lock that it concerns, and the checks that
// are known to catch it.
var injected = []struct {
	fault fault.Fault
	name  string
	only  string // the kind of lock; "" is any
	by    []string
}{
	{fault.GrantWithoutNode, "granted without a node of one's own", "mutex", []string{"node"}},
	{fault.WakeUpTaken, "a wake-up is taken for the grant", "mutex", []string{"overlap"}},
	{fault.RevokeWhenTold, "revocation only when the server says so", "mutex", []string{"node", "revocation", "overlap"}},
	{fault.RevokeAfterLoss, "loss counted from the disconnection", "mutex", []string{"node", "overlap"}},
	{fault.PingsProve, "pings counted as proof", "mutex", []string{"node", "overlap"}},
	{fault.CountFromReply, "heartbeats counted from the reply", "mutex", []string{"node", "overlap", "guarded writes"}},
	{fault.CleanUpCancelled, "clean-up with the cancelled context", "mutex", []string{"left behind", "turn"}},
	{fault.RemoveOnce, "a deletion is not repeated", "mutex", []string{"left behind", "turn"}},
	{fault.AdoptOwnerless, "an ownerless node is adopted", "mutex", []string{"node", "overlap", "turn", "left behind"}},
	{fault.ReleaseByName, "a lost lock is released late, by name", "mutex", []string{"node", "overlap"}},
	{fault.CreateBlindly, "a creation is repeated without looking", "mutex", []string{"left behind", "turn"}},
	{fault.OrderByName, "order by name", "rwlock", []string{"overlap", "tokens"}},
	{fault.TokenBySequence, "the sequence number is the token", "mutex", []string{"tokens"}},
	{fault.WaitOnMissing, "what is gone is waited for", "mutex", []string{"turn"}},
	{fault.FreeOnEvent, "an event frees permits", "semaphore", []string{"overlap"}},
	{fault.NoRoomNeeded, "a flow takes more than its share", "flows", []string{"shares"}},
	{fault.DelayOfWitness, "a lock delay is only for who saw it begin", "mutex", []string{"delay"}},
	{fault.OlderCount, "a count that is older than the own node", "semaphore", []string{"overlap"}},
	{fault.RoundTooSoon, "a round goes in with the one before", "double", []string{"round"}},
	{fault.LeaveOnce, "who leaves waits for one member only", "double", []string{"round"}},
	{fault.OldMembers, "the list of a group is not watched", "group", []string{"members"}},
}

func init() {
	flag.Func("sim.fault", "the `number` of a fault to put in", func(s string) error {
		n, err := strconv.Atoi(s)
		fault.Inject(fault.Fault(n))
		return err
	})
}

// faultSeeds is within how many seeds each must be caught.
const faultSeeds = 100

// TestInjectedFaults puts known faults of lock libraries into this one, one at a
// time. The oracle must see each of them.
func TestInjectedFaults(t *testing.T) {
	if len(injected) != int(fault.Number)-1 {
		t.Errorf("%d of %d faults are put in", len(injected), fault.Number-1)
	}
	for _, in := range injected {
		t.Run(in.name, func(t *testing.T) {
			fault.Inject(in.fault)
			defer fault.Inject(fault.None)
			var next, used atomic.Int64
			var mu sync.Mutex
			var caught *Report
			began := time.Now()
			var wg sync.WaitGroup
			for range runtime.GOMAXPROCS(0) {
				wg.Go(func() {
					for {
						n := next.Add(1)
						mu.Lock()
						over := caught != nil
						mu.Unlock()
						if n > faultSeeds || over {
							return
						}
						r := Run(t, Options{Seed: uint64(n), Length: 3 * time.Minute, Only: in.only, Busy: true})
						used.Add(1)
						if len(r.Violations) > 0 {
							mu.Lock()
							if caught == nil || r.Seed < caught.Seed {
								caught = &r
							}
							mu.Unlock()
						}
					}
				})
			}
			wg.Wait()
			if caught == nil {
				t.Fatalf("not caught within %d seeds", faultSeeds)
			}
			first := caught.Violations[0]
			t.Logf("| %s | %s | %d | %v |", in.name, first.Check, caught.Seed, first.At.Round(time.Second))
			if *progress > 0 {
				t.Log(caught)
			}
			t.Logf("in %v: %s", time.Since(began).Round(time.Second), first.What)
			if !slices.Contains(in.by, first.Check) {
				t.Errorf("caught by %q, which is not one of %q", first.Check, in.by)
			}
		})
	}
}
