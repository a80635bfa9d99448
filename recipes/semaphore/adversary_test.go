package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// Several sessions with several goroutines each take permits while an adversary
// does what can go wrong. Never are more held than there are, no slot is held twice
// and its tokens rise; in the end everybody has had what it wanted, and nothing is
// left.
func TestAdversary(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			run(t, func(e env) { trouble(e, seed) }, zktest.ReapInterval(300*time.Millisecond), zktest.AllowOpenSessions())
		})
	}
}

type dice struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

func (d *dice) number(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(n)
}

func (d *dice) ms(n int) time.Duration { return time.Duration(d.number(n)) * time.Millisecond }

func trouble(e env, seed uint64) {
	const size, clients, workers, rounds = 3, 4, 3, 4
	d := &dice{rnd: rand.New(rand.NewPCG(seed, 7))}
	w := &watchman{size: size}
	var sessions []*session.Session
	for range clients {
		sessions = append(sessions, e.Open())
	}
	var wg sync.WaitGroup
	for _, s := range sessions {
		sem := e.sem(s, size)
		for range workers {
			wg.Go(func() {
				for range rounds {
					work(e, sem, d, w)
					time.Sleep(d.ms(300))
				}
			})
		}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(d.ms(400)):
				harm(e, sessions, d)
			}
		}
	}()
	wg.Wait()
	close(stop)
	<-stopped
	e.Heal()
	e.Delay(0)
	time.Sleep(time.Minute) // sessions come back, old ones expire
	g := e.held(e.sem(sessions[0], size), size)
	w.saw(e.T, g)
	e.Release(g)
	e.Empty()
	if w.count != clients*workers*rounds+1 {
		e.T.Errorf("%d grants", w.count)
	}
}

// work goes on until it has had its permits, whatever comes between.
func work(e env, sem *semaphore.Semaphore, d *dice, w *watchman) {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		acquire := sem.AcquireN
		switch d.number(5) {
		case 0:
			acquire = sem.TryAcquireN
		case 1:
			time.AfterFunc(d.ms(2000), cancel)
		}
		g, err := acquire(ctx, 1+d.number(3))
		cancel()
		switch {
		case err != nil:
			if g != nil || !errors.Is(err, context.Canceled) && !errors.Is(err, recipes.ErrBusy) {
				e.T.Errorf("%v, %v", g, err)
			}
			time.Sleep(d.ms(300))
		case g.Err() != nil: // lost on the way to us
			g.Release(context.Background())
		default:
			w.saw(e.T, g)
			select {
			case <-time.After(d.ms(200)):
			case <-g.Done():
			}
			if err := g.Release(context.Background()); err != nil && !errors.Is(err, recipes.ErrRevoked) {
				e.T.Errorf("release: %v", err)
			}
			return
		}
	}
}

// harm does one thing that can go wrong. It takes no node or session away from a
// client that is well and holds: that is nothing a client can know in time.
func harm(e env, sessions []*session.Session, d *dice) {
	id := sessions[d.number(len(sessions))].ID()
	ops := []zktest.Op{zktest.OpCreate2, zktest.OpGetData, zktest.OpMulti, zktest.OpDelete, zktest.OpGetChildren2, zktest.OpExists, zktest.OpSync}
	switch d.number(9) {
	case 0, 1:
		e.Cut(id)
	case 2, 3:
		e.LoseReply(ops[d.number(len(ops))], 1+d.number(5))
	case 4:
		e.LoseRequest(ops[d.number(len(ops))], 1+d.number(5))
	case 5:
		e.Delay(d.ms(20))
	case 6:
		e.BlackHole(id, zktest.Direction(1+d.number(3)))
		time.Sleep(d.ms(15000))
		e.Heal()
	case 7:
		e.CutOffFollower(id)
		time.Sleep(d.ms(15000))
		e.Heal()
	case 8: // those who hold are at the front; the last one waits, or nobody does
		if names := leases(e.Children(locktest.Path)); len(names) > 3 {
			e.Delete(locktest.Path + "/" + names[len(names)-1])
		}
	}
}
