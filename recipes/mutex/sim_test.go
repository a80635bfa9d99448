package mutex_test

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
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// TestAdversary has several sessions with several goroutines each contend for one
// lock while an adversary does what can go wrong. No two hold it at a time, tokens
// rise, which is to say that those who kept their place are served in order of
// arrival; in the end everybody has had it as often as wanted, and nothing is left.
func TestAdversary(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) { simulate(e, seed) },
				zktest.ReapInterval(300*time.Millisecond), zktest.AllowOpenSessions())
		})
	}
}

type simulation struct {
	*locktest.Env
	locktest.Witness
	sessions []*session.Session

	mu  sync.Mutex
	rnd *rand.Rand
}

func (s *simulation) chance(n int) bool { return s.number(n) == 0 }

func (s *simulation) number(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.IntN(n)
}

func simulate(e *locktest.Env, seed uint64) {
	s := &simulation{Env: e, rnd: rand.New(rand.NewPCG(seed, 1))}
	for range 4 {
		s.sessions = append(s.sessions, e.Open())
	}
	var wg sync.WaitGroup
	for _, sess := range s.sessions {
		var opts []recipes.Option
		if seed%4 == 3 {
			opts = append(opts, recipes.LockDelay(500*time.Millisecond))
		}
		m := e.Mutex(sess, opts...)
		for range 3 {
			wg.Go(func() {
				for range 4 {
					s.contend(m)
					time.Sleep(time.Duration(s.number(300)) * time.Millisecond)
				}
			})
		}
	}
	stop := make(chan struct{})
	var adversary sync.WaitGroup
	adversary.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(s.number(400)) * time.Millisecond):
				s.harm()
			}
		}
	})
	wg.Wait()
	close(stop)
	adversary.Wait()
	e.Heal()
	e.Delay(0)
	e.OnRequest(nil)
	time.Sleep(time.Minute) // sessions come back, old ones expire, delays pass
	g := e.Lock(e.Mutex(s.sessions[0]))
	s.Saw(e.T, g)
	e.Release(g)
	e.Empty()
	if s.Count() != 4*3*4+1 {
		e.T.Errorf("%d grants", s.Count())
	}
}

// contend goes on until it has had the lock, whatever comes between.
func (s *simulation) contend(m interface {
	recipes.Lockable
	TryLock(context.Context) (*recipes.Grant, error)
}) {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		lock := m.Lock
		switch s.number(5) {
		case 0:
			lock = m.TryLock
		case 1:
			time.AfterFunc(time.Duration(s.number(2000))*time.Millisecond, cancel)
		}
		g, err := lock(ctx)
		cancel()
		switch {
		case err != nil:
			if g != nil || !errors.Is(err, context.Canceled) && !errors.Is(err, recipes.ErrBusy) {
				s.T.Errorf("%v, %v", g, err)
			}
			time.Sleep(time.Duration(s.number(300)) * time.Millisecond)
		case g.Err() != nil: // lost on the way to us
			if err := g.Release(context.Background()); !errors.Is(err, recipes.ErrRevoked) {
				s.T.Errorf("release of a lost lock: %v", err)
			}
		default:
			s.Saw(s.T, g)
			s.hold(g)
			return
		}
	}
}

func (s *simulation) hold(g *recipes.Grant) {
	t := time.NewTimer(time.Duration(s.number(200)) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-g.Done():
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := g.Release(context.Background()); err != nil && !errors.Is(err, recipes.ErrRevoked) {
			s.T.Errorf("release: %v", err)
		}
	}()
	if s.chance(2) { // the next attempt need not wait for the confirmation
		<-done
	}
}

// harm does one thing that can go wrong. It never takes a session away from a
// client that is well and holds: that no client can know.
func (s *simulation) harm() {
	id := s.sessions[s.number(len(s.sessions))].ID()
	ops := []zktest.Op{zktest.OpCreate2, zktest.OpGetData, zktest.OpExists, zktest.OpMulti, zktest.OpDelete, zktest.OpGetChildren2, zktest.OpSync}
	switch s.number(10) {
	case 0, 1:
		s.Cut(id)
	case 2:
		s.LoseReply(ops[s.number(len(ops))], 1+s.number(5))
	case 3:
		s.LoseRequest(ops[s.number(len(ops))], 1+s.number(5))
	case 4:
		s.Delay(time.Duration(s.number(20)) * time.Millisecond)
	case 5:
		s.BlackHole(id, zktest.Direction(1+s.number(3)))
		if s.chance(2) {
			time.Sleep(time.Duration(s.number(15000)) * time.Millisecond)
		}
		s.Heal()
	case 6:
		s.CutOffFollower(id)
		time.Sleep(time.Duration(s.number(15000)) * time.Millisecond)
		s.Heal()
	case 7:
		s.StaleReads(id, true)
	case 8: // a waiter's node; not the first, who may hold
		if names := s.Children(locktest.Path); len(names) > 2 {
			s.Delete(locktest.Path + "/" + names[1+s.number(len(names)-1)])
		}
	case 9:
		s.Refuse(true)
		s.Cut(0)
		time.Sleep(time.Duration(s.number(3000)) * time.Millisecond)
		s.Refuse(false)
	}
}
