package conformance

import (
	"maps"
	"slices"
	"testing"
)

// A check is one subtest.
type check struct {
	name    string
	promise string // that it stands for
	needs   []Capability
	// One of these: a check of the lock, or one for each way in.
	lock func(e *env)
	way  func(e *env, w int)
}

// Run runs all checks as subtests of t.
func (s Suite) Run(t *testing.T) {
	s.validate(t)
	for _, c := range checks {
		s.run(t, c)
	}
}

var checks = slices.Concat(
	exclusionChecks, orderChecks, tryChecks, contextChecks, stepChecks,
	revocationChecks, requeueChecks, tokenChecks, reuseChecks, callbackChecks, closeChecks,
	releaseChecks, reentryChecks, holdChecks, delayChecks, contenderChecks, doChecks, allChecks,
)

func (s Suite) run(t *testing.T, c check) {
	if skip(t, c.name, c, s.Lacks) {
		return
	}
	if c.lock != nil {
		s.inWorld(t, c.name, c, c.lock)
		return
	}
	t.Run(c.name, func(t *testing.T) {
		t.Parallel()
		for w, way := range s.Ways {
			if !skip(t, way.Name, c, way.Lacks) {
				s.inWorld(t, way.Name, c, func(e *env) { c.way(e, w) })
			}
		}
	})
}

// skip reports whether something is lacking that the check needs, and shows it.
func skip(t *testing.T, name string, c check, lacks map[Capability]string) bool {
	for _, need := range c.needs {
		if reason, lacking := lacks[need]; lacking {
			t.Run(name, func(t *testing.T) { t.Skipf("no %s: %s", need, reason) })
			return true
		}
	}
	return false
}

func (s Suite) inWorld(t *testing.T, name string, c check, f func(e *env)) {
	s.Backend.Run(t, name, func(t *testing.T, w World) {
		e := &env{World: w, t: t, s: s}
		defer func() {
			if t.Failed() {
				t.Logf("the promise: %s", c.promise)
			}
		}()
		f(e)
		if t.Failed() {
			return
		}
		w.Heal()
		for _, lock := range []string{lockX, lockY} {
			if left, ok := w.Empty(lock); !ok {
				t.Errorf("left behind: %s", left)
			}
		}
	})
}

var capabilities = []Capability{
	Order, Try, Tokens, Delay, Contenders, Reentry, All, Losing, CuttingOff, Removing, Steps, Requeueing,
}

// validate checks the description itself: what it gets wrong would go untested.
func (s Suite) validate(t *testing.T) {
	t.Helper()
	if s.Backend == nil || s.Size < 1 || len(s.Ways) == 0 {
		t.Fatal("a suite wants a backend, a size and a way in")
	}
	for _, w := range s.Ways {
		if w.Name == "" || w.Takes < 1 || w.Takes > s.Size {
			t.Fatalf("way %+v of size %d", w, s.Size)
		}
		validateLacks(t, w.Lacks)
	}
	validateLacks(t, s.Lacks)
}

func validateLacks(t *testing.T, lacks map[Capability]string) {
	t.Helper()
	for _, c := range slices.Sorted(maps.Keys(lacks)) {
		if !slices.Contains(capabilities, c) {
			t.Fatalf("no such capability: %q", c)
		}
		if lacks[c] == "" {
			t.Fatalf("no reason why it lacks %s", c)
		}
	}
}

func (s Suite) has(c Capability) bool {
	_, lacks := s.Lacks[c]
	return !lacks
}
