package fence_test

import (
	"errors"
	"math"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A gate admits what is not smaller than all before it, whatever comes.
func TestGateAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g fence.Gate
		var largest recipes.Token
		for _, n := range rapid.SliceOf(rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 5))).Draw(t, "tokens") {
			token := recipes.Token(n)
			err := g.Admit(token)
			admitted := token != 0 && token >= largest
			if admitted != (err == nil) || !admitted && !errors.Is(err, fence.ErrStale) {
				t.Fatalf("%v after %v: %v", token, largest, err)
			}
			if admitted {
				largest = token
			}
			if g.Largest() != largest {
				t.Fatalf("largest is %v, want %v", g.Largest(), largest)
			}
		}
	})
}

func TestGateDo(t *testing.T) {
	var g fence.Gate
	boom := errors.New("boom")
	if err := g.Do(7, func() error { return boom }); err != boom || g.Largest() != 7 {
		t.Errorf("%v, largest %v", err, g.Largest())
	}
	if err := g.Do(6, func() error { t.Error("ran with a stale token"); return nil }); !errors.Is(err, fence.ErrStale) {
		t.Error(err)
	}
	func() {
		defer func() { recover() }()
		g.Do(8, func() error { panic("ouch") })
	}()
	if err := g.Do(math.MaxInt64, func() error { return nil }); err != nil { // not left locked
		t.Error(err)
	}
}

// While fn runs, no other token gets in.
func TestGateIsClosedWhileFnRuns(t *testing.T) {
	var g fence.Gate
	var wg sync.WaitGroup
	written := recipes.Token(0) // guarded by the gate, as the race detector sees
	for i := range 50 {
		wg.Go(func() {
			token := recipes.Token(i + 1)
			err := g.Do(token, func() error {
				if written > token {
					t.Errorf("%v written over %v", token, written)
				}
				written = token
				return nil
			})
			if err != nil && !errors.Is(err, fence.ErrStale) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if written != 50 {
		t.Errorf("last written: %v", written)
	}
}
