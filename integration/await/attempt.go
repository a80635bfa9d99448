package await

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// An Attempt is an acquisition that goes on while the test does something else.
type Attempt struct {
	done chan struct{}
	g    *recipes.Grant
	err  error
}

// Later starts an attempt.
func Later(t testing.TB, acquire func(context.Context) (*recipes.Grant, error)) *Attempt {
	t.Helper()
	return Under(Context(t), acquire)
}

// Under starts an attempt under ctx.
func Under(ctx context.Context, acquire func(context.Context) (*recipes.Grant, error)) *Attempt {
	a := &Attempt{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.g, a.err = acquire(ctx)
	}()
	return a
}

// Done returns a channel that is closed when the attempt is over.
func (a *Attempt) Done() <-chan struct{} { return a.done }

// Grant waits for the grant.
func (a *Attempt) Grant(t testing.TB) *recipes.Grant {
	t.Helper()
	return a.Within(t, Patience)
}

// Within waits for the grant for so long.
func (a *Attempt) Within(t testing.TB, d time.Duration) *recipes.Grant {
	t.Helper()
	select {
	case <-a.done:
	case <-time.After(d):
		t.Fatalf("not granted within %v", d)
	}
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.g
}

// Fails waits for the end, which must be that error.
func (a *Attempt) Fails(t testing.TB, want error) {
	t.Helper()
	select {
	case <-a.done:
	case <-time.After(Patience):
		t.Fatalf("it does not return, want %v", want)
	}
	if a.g != nil || !errors.Is(a.err, want) {
		t.Fatalf("%v, %v; want %v", a.g, a.err, want)
	}
}

// Waits checks that the attempt is not over.
func (a *Attempt) Waits(t testing.TB) {
	t.Helper()
	select {
	case <-a.done:
		t.Fatalf("it does not wait: %v, %v", a.g, a.err)
	default:
	}
}

// Grant waits for a grant.
func Grant(t testing.TB, acquire func(context.Context) (*recipes.Grant, error)) *recipes.Grant {
	t.Helper()
	return Later(t, acquire).Grant(t)
}
