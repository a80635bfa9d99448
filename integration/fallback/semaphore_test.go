package fallback_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/link"
	"github.com/lockkeeper/lockkeeper/integration/redistest"
	"github.com/lockkeeper/lockkeeper/internal/redisconformance"
	"github.com/lockkeeper/lockkeeper/recipes"
)

func TestSemaphoreConformance(t *testing.T) {
	redisconformance.Semaphore(redisconformance.Backend{
		Start:   borrowed,
		Options: []recipes.Option{fallback.TTL(time.Second), fallback.WaiterTimeout(time.Second)},
	}).Run(t)
}

func semaphore(t *testing.T, addr string, size int, opts ...recipes.Option) *fallback.Semaphore {
	t.Helper()
	s, err := fallback.NewSemaphore(open(t, dial(t, addr)), key(t), size, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func permits(s *fallback.Semaphore, n int) func(context.Context) (*recipes.Grant, error) {
	return func(ctx context.Context) (*recipes.Grant, error) { return s.AcquireN(ctx, n) }
}

// A holder is cut off for good: its permits and slots come back, and the others stay.
func TestHolderOfPermitsDies(t *testing.T) {
	s := redistest.Start(t)
	s.StopExpiring(t)
	l := link.New(t, s.Addr())
	stays := await.Grant(t, semaphore(t, s.Addr(), 3).Acquire)
	dies := await.Grant(t, permits(semaphore(t, l.Addr(), 3, fallback.TTL(time.Second)), 2))
	other := semaphore(t, s.Addr(), 3)
	if _, err := other.TryAcquire(await.Context(t)); !errors.Is(err, recipes.ErrBusy) {
		t.Fatal(err)
	}
	l.Hole()
	g := await.Grant(t, permits(other, 2))
	if !slices.Equal(g.Slots(), dies.Slots()) {
		t.Errorf("slots %v after %v", g.Slots(), dies.Slots())
	}
	ended(t, dies, recipes.ErrSessionLost)
	stands(t, stays)
	await.Release(t, g, stays)
	l.Heal()
	nothingLeft(t, s)
}

// Answers get lost: no permit is taken twice, or given back twice. R01, R02, R07
func TestAnswersAboutPermitsAreLost(t *testing.T) {
	s := redistest.Start(t)
	noneLeft(t, s)
	l := link.New(t, s.Addr())
	near, other := semaphore(t, l.Addr(), 3), semaphore(t, s.Addr(), 3)
	await.Release(t, await.Grant(t, other.Acquire))
	for range 3 {
		trap := l.LoseAnswer(script)
		g := await.Grant(t, permits(near, 2))
		<-trap.Sprung()
		one := await.Grant(t, other.Acquire)
		if !slices.Equal(g.Slots(), []int{0, 1}) || !slices.Equal(one.Slots(), []int{2}) {
			t.Errorf("slots %v and %v", g.Slots(), one.Slots())
		}
		trap = l.LoseAnswer(script)
		await.Release(t, g)
		<-trap.Sprung()
		if _, err := other.TryAcquireN(await.Context(t), 3); !errors.Is(err, recipes.ErrBusy) {
			t.Fatalf("three permits beside one: %v", err)
		}
		await.Release(t, one)
	}
	nothingLeft(t, s)
}

// A full server: permits are renewed, given back and handed over. R61
func TestPermitsOnAFullServer(t *testing.T) {
	s := redistest.Start(t)
	noneLeft(t, s)
	a, b := semaphore(t, s.Addr(), 3, fallback.TTL(3*time.Second)), semaphore(t, s.Addr(), 3)
	g := await.Grant(t, permits(a, 2))
	next := await.Later(t, permits(b, 3))
	await.InLine(t, a, 2)
	s.Fill(t)
	stands(t, g)
	await.Release(t, g)
	h := next.Within(t, soon)
	stands(t, h)
	await.Release(t, h)
	nothingLeft(t, s)
}

// All the permits that there can be, in one request and one message.
func TestAllPermitsAtOnce(t *testing.T) {
	s := redistest.Start(t)
	noneLeft(t, s)
	a, b := semaphore(t, s.Addr(), fallback.MaxPermits, byTimer()), semaphore(t, s.Addr(), fallback.MaxPermits, byTimer())
	g := await.Grant(t, permits(a, fallback.MaxPermits))
	next := await.Later(t, permits(b, fallback.MaxPermits))
	await.InLine(t, a, 2)
	await.Release(t, g)
	h := next.Within(t, soon)
	if n := len(h.Slots()); n != fallback.MaxPermits {
		t.Errorf("%d slots", n)
	}
	await.Release(t, h)
}
