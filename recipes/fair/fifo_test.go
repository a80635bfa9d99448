package fair_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// 128 waiters of 8 sessions, by Lock or with tickets, and up to four of the sessions
// end while they wait: the others are served in the order in which they came, without
// one inversion; and those who Lock queue again and are served after that.
func TestOrderOfArrival(t *testing.T) {
	for _, flow := range []struct {
		name string
		opts []recipes.Option
	}{{"plain", nil}, {"flow", []recipes.Option{fair.Flow("a", 3)}}} {
		t.Run(flow.name, func(t *testing.T) {
			seeds(t, 5, func(t *testing.T, seed uint64) {
				run(t, func(e env) { arriveAndDie(e, seed, flow.opts) }, zktest.AllowOpenSessions())
			})
		})
	}
}

func arriveAndDie(e env, seed uint64, opts []recipes.Option) {
	rnd := rand.New(rand.NewPCG(seed, 2))
	const waiters = 128
	sessions, locks, dead := make([]*session.Session, 8), make([]*fair.Lock, 8), make([]bool, 8)
	for i := range sessions {
		sessions[i] = e.Open()
		locks[i] = e.at(sessions[i], opts...)
	}
	keeper := e.lock(opts...)
	first := e.Lock(keeper)

	var witness locktest.Witness
	order := make(chan int, waiters)
	holds := make([]time.Duration, waiters)
	var wg sync.WaitGroup
	for i := range waiters {
		holds[i] = time.Duration(rnd.IntN(300)) * time.Millisecond
		l := locks[i%8]
		wait := l.Lock
		if rnd.IntN(2) == 0 { // a ticket, with a Wait that is given up and called again
			x := e.join(l)
			patience := time.Duration(1+rnd.IntN(20)) * time.Second
			wait = func(ctx context.Context) (*recipes.Grant, error) {
				for {
					short, cancel := context.WithTimeout(ctx, patience)
					g, err := x.Wait(short)
					cancel()
					if !errors.Is(err, context.DeadlineExceeded) {
						return g, err
					}
				}
			}
		}
		wg.Go(func() {
			ctx := context.Background()
			g, err := wait(ctx)
			if err != nil {
				if !dead[i%8] {
					e.T.Errorf("waiter %d: %v", i, err)
				}
				return
			}
			if g.Err() == nil {
				witness.Saw(e.T, g)
				order <- i
			}
			select {
			case <-time.After(holds[i]):
			case <-g.Done():
			}
			g.Release(ctx)
		})
		synctest.Wait() // it stands in line
	}
	e.Release(first)
	for _, i := range rnd.Perm(8)[:rnd.IntN(5)] {
		time.Sleep(time.Duration(rnd.IntN(5000)) * time.Millisecond)
		dead[i] = true
		switch rnd.IntN(3) {
		case 0:
			e.expire(sessions[i])
		case 1:
			sessions[i].Close()
		case 2:
			e.BlackHole(sessions[i].ID(), zktest.Direction(1+rnd.IntN(3)))
			time.Sleep(25 * time.Second)
			e.Heal()
		}
	}
	wg.Wait()
	close(order)
	last, n := -1, 0
	for i := range order {
		if dead[i%8] {
			continue
		}
		if i < last {
			e.T.Errorf("waiter %d was served after waiter %d", i, last)
		}
		last = i
		n++
	}
	for i := range sessions {
		if !dead[i] {
			n -= waiters / 8
		}
	}
	if n != 0 {
		e.T.Errorf("%d grants too few or too many", n)
	}
	e.empty()
}
