// Package await has the waits of tests on real servers: for a grant, for a place in
// line, for whatever else is to come. All of them are bounded, so that a test can say
// which wait never ended.
package await

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Patience bounds what has to happen some time, and decides about nothing else.
const Patience = 2 * time.Minute

// Context returns a context for what has to happen some time.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), Patience, errors.New("the test has waited for too long"))
	t.Cleanup(cancel)
	return ctx
}

// Until waits for a state that has to be asked for, such as a server's. It may be
// called in a test's clean-up.
func Until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// InLine waits until n contenders are in line, the holders included.
func InLine(t testing.TB, lock interface {
	Contenders(context.Context) ([]recipes.Contender, error)
}, n int) {
	t.Helper()
	ctx := Context(t)
	for {
		c, err := lock.Contenders(ctx)
		if err != nil {
			t.Fatalf("waiting for %d in line: %v", n, err)
		}
		if len(c) == n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Release gives up what is held.
func Release(t testing.TB, grants ...*recipes.Grant) {
	t.Helper()
	for _, g := range grants {
		if err := g.Release(Context(t)); err != nil {
			t.Errorf("token %v: %v", g.Token(), err)
		}
	}
}
