package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A lock is one that the clients contend for, and what the oracle remembers of it.
type lock struct {
	kind    string
	path    string
	size    int            // of a semaphore
	weights map[string]int // of a lock with flows
	delay   time.Duration  // LockDelay, of some who contend
	nests   bool           // Reentrant
	party   int            // of a double barrier's round

	// Of the oracle's, under its mutex.
	highest, exclusive recipes.Token // of all grants, and of those that exclude
	bySlot             map[int]recipes.Token
	turns              []turn
	deaths             []death
	full               time.Time // when a round could last have been let in
	meddled            time.Time // when somebody last removed nodes of the flows
}

// Kinds are the locks that there are.
var Kinds = []string{"mutex", "rwlock", "semaphore", "election", "fair", "flows", "shares", "double", "group"}

func newLock(kind string, dice *rand.Rand) *lock {
	lk := &lock{kind: kind, path: "/sim/" + kind, bySlot: make(map[int]recipes.Token)}
	switch kind {
	case "semaphore":
		lk.size = []int{1, 1, 2, 3, 4}[dice.IntN(5)]
	case "double":
		lk.party = 2 + dice.IntN(2)
		return lk
	case "group":
		return lk
	case "flows", "shares":
		lk.weights = map[string]int{"a": 1, "b": 1 + dice.IntN(2), "c": 1 + dice.IntN(3)}
	}
	if kind != "semaphore" && dice.IntN(3) == 0 {
		lk.delay = time.Duration(200+dice.IntN(2000)) * time.Millisecond
	}
	lk.nests = kind != "election" && dice.IntN(2) == 0
	return lk
}

// plan draws who there is, and what for.
func (w *world) plan() {
	kinds := []string{w.Only}
	if w.Only == "" {
		kinds = slices.Clone(Kinds)
		w.dice.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		kinds = kinds[:1+w.dice.IntN(2)]
		// Every kind comes up, however few the seeds.
		if first := Kinds[w.Seed%uint64(len(Kinds))]; !slices.Contains(kinds, first) {
			kinds[0] = first
		}
	}
	for _, kind := range kinds {
		lk := newLock(kind, w.dice)
		w.locks = append(w.locks, lk)
		if lk.party > 0 {
			w.o.rounds = append(w.o.rounds, lk)
		}
	}
	w.pace = []time.Duration{time.Second, 3 * time.Second, 6 * time.Second}[w.dice.IntN(3)]
	if w.Busy {
		w.pace = 500 * time.Millisecond
	}
	n := 3 + w.dice.IntN(2)
	for i := range n {
		w.clients = append(w.clients, newClient(w, i))
	}
	w.o.note("seed %d: %d clients, locks %v", w.Seed, n, w.locks)
}

func (lk *lock) String() string {
	return fmt.Sprintf("{%s size=%d weights=%v delay=%v nests=%v}", lk.kind, lk.size, lk.weights, lk.delay, lk.nests)
}

// seldom draws a duration that is mostly well below the mean and sometimes far
// above it, up to ten times.
func seldom(dice *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(min(dice.ExpFloat64(), 10) * float64(mean))
}
