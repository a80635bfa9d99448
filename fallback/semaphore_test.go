package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// n returns an acquisition of n permits.
func n(acquire func(context.Context, int) (*recipes.Grant, error), n int) acquire {
	return func(ctx context.Context) (*recipes.Grant, error) { return acquire(ctx, n) }
}

// One of three holders dies. Its permits come back when its own time is over, whatever
// the others do, with its slots; those of the others stay.
func TestPermitsOfADeadHolderComeBack(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		const size = 5
		a, b, c := s.player(fallback.TTL(20*time.Second)), s.player(fallback.TTL(5*time.Second)), s.player(fallback.TTL(time.Second))
		ga, gb, gc := s.get(s.semaphore(a, size).Acquire), s.get(n(s.semaphore(b, size).AcquireN, 2)), s.get(n(s.semaphore(c, size).AcquireN, 2))
		waiter := s.wait(s.semaphore(s.player(), size).Acquire)
		time.Sleep(time.Minute)
		s.stands(ga, gb, gc)
		b.w.die() // renewed just now
		died := time.Now()
		g := waiter.grant()
		if d := waiter.at.Sub(died); d < 5*time.Second || d > 5*time.Second+100*time.Millisecond {
			t.Errorf("after %v, the dead holder's TTL was 5s", d)
		}
		s.ends(gb, recipes.ErrSessionLost)
		s.stands(ga, gc, g)
		if !slices.Equal(g.Slots(), gb.Slots()[:1]) || !slices.Equal(gb.Slots(), []int{1, 2}) {
			t.Errorf("slots %v after %v", g.Slots(), gb.Slots())
		}
		s.release(ga, gc, g)
		s.left()
	})
}

// A request for many waits, and those for few behind it do, too, though there is room
// for them: also one that only tries.
func TestLargeRequestIsNotPassed(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		sem := s.semaphore(s.player(), 3)
		first, second := s.get(sem.Acquire), s.get(sem.Acquire)
		large := s.wait(n(sem.AcquireN, 3))
		small := s.wait(s.semaphore(s.player(), 3).Acquire)
		s.fails(sem.TryAcquire, recipes.ErrBusy)
		s.release(first)
		if !large.pending() || !small.pending() {
			t.Fatal("passed")
		}
		s.release(second)
		if got := large.grant().Slots(); !slices.Equal(got, []int{0, 1, 2}) || !small.pending() {
			t.Fatalf("slots %v", got)
		}
		s.release(large.g)
		s.release(small.grant())

		held := s.get(n(sem.AcquireN, 2))
		large, small = s.wait(n(sem.AcquireN, 2)), s.wait(sem.Acquire)
		large.cancel() // and then the next fits
		if g := small.grant(); !slices.Equal(g.Slots(), []int{2}) {
			t.Errorf("slots %v", g.Slots())
		}
		s.release(held, small.g)
		s.left()
	})
}

// Holders come and go, give up and die in all ways. No two have a slot at the same time,
// nor more than the size are held; a slot's tokens rise.
func TestNoTwoHaveTheSameSlot(t *testing.T) {
	for seed := range uint64(3) {
		onStage(t, func(t *testing.T, s *stage) {
			const size = 5
			var mu sync.Mutex
			holder := make(map[int]*recipes.Grant)
			var wg sync.WaitGroup
			for i := range 12 {
				p := s.player(fallback.TTL(2 * time.Second))
				sem := s.semaphore(p, size)
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				wg.Go(func() {
					for range 15 {
						permits := 1 + rnd.IntN(3)
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rnd.IntN(3000))*time.Millisecond)
						g, err := sem.AcquireN(ctx, permits)
						cancel()
						if err != nil {
							continue
						}
						mu.Lock()
						for _, slot := range g.Slots() {
							if other := holder[slot]; other != nil && (other.Err() == nil || other.Token() >= g.Token()) {
								t.Errorf("slot %d: token %v beside %v", slot, g.Token(), other.Token())
							}
							if slot < 0 || slot >= size {
								t.Errorf("slot %d", slot)
							}
							holder[slot] = g
						}
						mu.Unlock()
						if len(g.Slots()) != permits || !slices.IsSorted(g.Slots()) {
							t.Errorf("%d permits, slots %v", permits, g.Slots())
						}
						time.Sleep(time.Duration(rnd.IntN(700)) * time.Millisecond)
						if i < 3 && rnd.IntN(10) == 0 {
							p.w.die()
							return
						}
						if err := g.Release(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			s.release(s.get(n(s.semaphore(s.player(), size).AcquireN, size)))
			s.left()
		})
	}
}

// Others use another size. They are turned away before they queue, as long as anybody
// holds or waits, and are told which it is.
func TestSizeIsThatOfWhoeverWasFirst(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		three, four := s.semaphore(s.player(), 3), s.semaphore(s.player(), 4)
		g := s.get(three.Acquire)
		s.fails(four.TryAcquire, recipes.ErrConflict)
		_, err := four.Acquire(t.Context())
		if !errors.Is(err, recipes.ErrConflict) || !strings.Contains(err.Error(), "its size is 3") {
			t.Errorf("%v", err)
		}
		large := s.wait(n(three.AcquireN, 3))
		s.srv.Del(keyed("lock")) // nobody holds, somebody waits
		s.fails(four.Acquire, recipes.ErrConflict)
		s.ends(g, recipes.ErrNodeDeleted)
		s.release(large.grant())
		s.release(s.get(n(four.AcquireN, 4)))
		s.left()
	})
}

// Somebody removes a part of what is on the server, whichever: slots are unique again.
func TestPartOfTheSemaphoreIsRemoved(t *testing.T) {
	for _, part := range []string{"lock", "holds", "slots"} {
		t.Run(part, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				sem := s.semaphore(s.player(), 4, fallback.TTL(time.Hour))
				a, b := s.get(n(sem.AcquireN, 2)), s.get(sem.Acquire)
				s.srv.Del(keyed(part))
				next := s.get(s.semaphore(s.player(), 4).Acquire)
				if part == "slots" {
					s.stands(a, b)
					if !slices.Equal(next.Slots(), []int{3}) {
						t.Errorf("slots %v", next.Slots())
					}
				} else {
					a.Verify(t.Context())
					b.Verify(t.Context())
					s.ends(a, recipes.ErrNodeDeleted)
					s.ends(b, recipes.ErrNodeDeleted)
				}
				s.stands(next)
			})
		})
	}
}

// The bits of the slots are made anew by one that only leaves: they go by themselves.
func TestSlotsAreMadeAnew(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		sem := s.semaphore(s.player(), 4, fallback.FixedLease())
		a, b := s.get(n(sem.AcquireN, 2)), s.get(sem.Acquire)
		s.srv.Del(keyed("slots"))
		s.release(a)
		s.nothingForEver()
		if g := s.get(n(sem.AcquireN, 3)); !slices.Equal(g.Slots(), []int{0, 1, 3}) || !slices.Equal(b.Slots(), []int{2}) {
			t.Errorf("slots %v beside %v", g.Slots(), b.Slots())
		}
	})
}

// A nested grant shares what the outer one has, and can't have more.
func TestNestedPermits(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		sem := s.semaphore(s.player(recipes.LockDelay(time.Hour)), 3, recipes.Reentrant())
		g := s.get(n(sem.AcquireN, 2))
		under := func(permits int) acquire {
			return func(ctx context.Context) (*recipes.Grant, error) { return sem.AcquireN(g.Context(ctx), permits) }
		}
		inner := s.get(under(2))
		if !slices.Equal(inner.Slots(), g.Slots()) {
			t.Errorf("slots %v in %v", inner.Slots(), g.Slots())
		}
		s.fails(under(3), recipes.ErrDeadlock)
		s.release(g)
		s.fails(n(sem.TryAcquireN, 2), recipes.ErrBusy)
		s.release(inner)
		s.left()
	})
}

// As many as there can be, one by one and all at once.
func TestLargestSemaphore(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		sem := s.semaphore(s.player(), fallback.MaxPermits)
		one := s.get(sem.Acquire)
		waits := s.wait(n(sem.AcquireN, fallback.MaxPermits))
		s.release(one)
		if got := waits.grant().Slots(); len(got) != fallback.MaxPermits || got[len(got)-1] != fallback.MaxPermits-1 {
			t.Errorf("%d slots", len(got))
		}
		s.release(waits.g)
		s.left()
	})
}

func TestContendersOfASemaphore(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		sem := s.semaphore(s.player(), 4, recipes.Owner("o"))
		a, b := s.get(n(sem.AcquireN, 3)), s.get(sem.Acquire)
		c := s.wait(n(sem.AcquireN, 2))
		list, err := sem.Contenders(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range list {
			got = append(got, fmt.Sprint(c.Kind, " ", c.Holding, " ", c.Permits, c.Slots))
		}
		if want := []string{"lease true 3 [0 1 2]", "lease true 1 [3]", "lease false 2 []"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		s.release(a, b)
		s.release(c.grant())
	})
}

func TestInputOfSemaphore(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		p := s.player()
		sem := s.semaphore(p, 3)
		before := p.w.count()
		for _, err := range []error{
			second(fallback.NewSemaphore(nil, "x", 1)),
			second(fallback.NewSemaphore(p.Client, "", 1)),
			second(fallback.NewSemaphore(p.Client, "x", 0)),
			second(fallback.NewSemaphore(p.Client, "x", fallback.MaxPermits+1)),
			second(fallback.NewSemaphore(p.Client, "x", 1, recipes.LockDelay(time.Second))),
			second(fallback.NewSemaphore(p.Client, "x", 1, fallback.Passes(1))),
			second(sem.AcquireN(t.Context(), 0)),
			second(sem.AcquireN(t.Context(), 4)),
			second(sem.TryAcquireN(t.Context(), -1)),
		} {
			if !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("%v, want ErrInvalid", err)
			}
		}
		if p.w.count() != before {
			t.Error("something was sent")
		}
	})
}
