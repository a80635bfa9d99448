package sim

import (
	"fmt"
	"testing"
	"time"
)

// found are seeds that found something, and what it was: without the mend they find it
// again, as long as nothing else is drawn than when they were taken down.
var found = []struct {
	Options
	what string
}{
	{Options{Seed: 7, Length: 3 * time.Minute, Only: "semaphore", Busy: true},
		"a permit was given twice: the number of children was older than the own node"},
}

// TestFoundSeeds runs them again. What they found has a test of its own beside.
func TestFoundSeeds(t *testing.T) {
	for _, f := range found {
		t.Run(fmt.Sprint(f.Seed, " ", f.Only), func(t *testing.T) {
			if r := Run(t, f.Options); len(r.Violations) > 0 {
				t.Errorf("%s:\n%v", f.what, r)
			}
		})
	}
}
