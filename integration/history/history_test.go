package history

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// op is an operation between two moments.
func op(what string, token recipes.Token, from, to int64) porcupine.Operation {
	return porcupine.Operation{Input: what, Output: token, Call: from, Return: to}
}

func TestModel(t *testing.T) {
	for _, test := range []struct {
		name string
		ops  []porcupine.Operation
		want bool
	}{
		{"one after the other", []porcupine.Operation{
			op(acquired, 1, 0, 1), op(ended, 1, 2, 3), op(acquired, 2, 4, 5), op(ended, 2, 6, 7),
		}, true},
		{"granted while waiting, after the end", []porcupine.Operation{
			op(acquired, 1, 0, 1), op(ended, 1, 4, 6), op(acquired, 2, 2, 5), op(ended, 2, 7, 8),
		}, true},
		{"two at once", []porcupine.Operation{
			op(acquired, 1, 0, 1), op(acquired, 2, 2, 3), op(ended, 1, 4, 5), op(ended, 2, 6, 7),
		}, false},
		{"the first ends too late", []porcupine.Operation{
			op(acquired, 1, 0, 1), op(acquired, 2, 2, 5), op(ended, 1, 6, 7), op(ended, 2, 6, 8),
		}, false},
		{"token falls", []porcupine.Operation{
			op(acquired, 2, 0, 1), op(ended, 2, 2, 3), op(acquired, 1, 4, 5), op(ended, 1, 6, 7),
		}, false},
		{"token repeated", []porcupine.Operation{
			op(acquired, 1, 0, 1), op(ended, 1, 2, 3), op(acquired, 1, 4, 5), op(ended, 1, 6, 7),
		}, false},
	} {
		if got := porcupine.CheckOperations(model, test.ops); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// broken is a lock that lets everybody in.
type broken struct{ tokens recipes.Token }

func (b *broken) Lock(context.Context) (*recipes.Grant, error) {
	b.tokens++
	g, _ := recipes.NewGrant(recipes.Spec{Path: "/broken", Token: b.tokens, Hold: hold{}})
	return g, nil
}

type hold struct{}

func (hold) Remaining() time.Duration             { return time.Hour }
func (hold) Verify(context.Context) error         { return nil }
func (hold) GiveUp(cause error, done func(error)) { done(nil) }

// failures is a test that only counts them.
type failures struct {
	testing.TB
	count int
}

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.count++ }

func TestRecorderCatchesABrokenLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := &failures{TB: t}
		r, lock := New(fails), new(broken)
		one, _ := r.Acquire(t.Context(), 1, lock.Lock)
		two, _ := r.Acquire(t.Context(), 2, lock.Lock)
		if fails.count != 1 {
			t.Errorf("%d failures at the second grant, want 1", fails.count)
		}
		time.Sleep(time.Second) // of virtual time: both are seen open
		one.Release(t.Context())
		two.Release(t.Context())
		r.Check()
		if fails.count != 2 {
			t.Errorf("%d failures after the check, want 2", fails.count)
		}
	})
}

func TestRecorderAcceptsALock(t *testing.T) {
	r, lock := New(t), new(broken)
	for client := range 3 { // one after the other it does no harm
		g, _ := r.Acquire(t.Context(), client, lock.Lock)
		g.Release(t.Context())
	}
	r.Check()
	if r.Grants() != 3 {
		t.Errorf("%d grants recorded", r.Grants())
	}
}
