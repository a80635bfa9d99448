package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// TestAdversary has several sessions with several goroutines each read and write,
// and read on after they have written, while an adversary does what can go wrong.
// No writer holds together with anybody else, tokens are in order; in the end
// everybody has had the lock as often as wanted, and nothing is left.
func TestAdversary(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			run(t, func(e *env) { simulate(e, seed) },
				zktest.ReapInterval(300*time.Millisecond), zktest.AllowOpenSessions())
		})
	}
}

type simulation struct {
	*env
	witness
	sessions []*session.Session

	rndMu sync.Mutex
	rnd   *rand.Rand
}

func (s *simulation) chance(n int) bool { return s.number(n) == 0 }

func (s *simulation) number(n int) int {
	s.rndMu.Lock()
	defer s.rndMu.Unlock()
	return s.rnd.IntN(n)
}

func (s *simulation) ms(n int) time.Duration { return time.Duration(s.number(n)) * time.Millisecond }

func simulate(e *env, seed uint64) {
	s := &simulation{env: e, rnd: rand.New(rand.NewPCG(seed, 2))}
	var opts []recipes.Option
	if seed%4 == 3 {
		opts = append(opts, recipes.LockDelay(500*time.Millisecond))
	}
	var contenders, adversary sync.WaitGroup
	for range 4 {
		sess := e.Open()
		s.sessions = append(s.sessions, sess)
		l := e.rw(sess, opts...)
		for range 3 {
			contenders.Go(func() {
				for range 4 {
					s.contend(l)
					time.Sleep(s.ms(300))
				}
			})
		}
	}
	stop := make(chan struct{})
	adversary.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(s.ms(400)):
				s.harm()
			}
		}
	})
	contenders.Wait()
	close(stop)
	adversary.Wait()
	e.Heal()
	e.Delay(0)
	e.OnRequest(nil)
	time.Sleep(time.Minute) // sessions come back, old ones expire, delays pass
	for _, l := range []*rwlock.RWLock{e.own(), e.rw(s.sessions[0])} {
		g := e.write(l)
		s.saw(e.T, g, true)
		e.Release(g)
	}
	e.Empty()
	if s.count < 4*3*4+2 {
		e.T.Errorf("%d grants", s.count)
	}
}

// contend goes on until it has had the lock, one side or the other, whatever comes
// between.
func (s *simulation) contend(l *rwlock.RWLock) {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		writes := s.chance(3)
		lock, try := l.RLock, l.TryRLock
		if writes {
			lock, try = l.Lock, l.TryLock
		}
		switch s.number(5) {
		case 0:
			lock = try
		case 1:
			time.AfterFunc(s.ms(2000), cancel)
		}
		g, err := lock(ctx)
		cancel()
		switch {
		case err != nil:
			if g != nil || !errors.Is(err, context.Canceled) && !errors.Is(err, recipes.ErrBusy) {
				s.T.Errorf("%v, %v", g, err)
			}
			time.Sleep(s.ms(300))
		case g.Err() != nil: // lost on the way to us
			s.release(g)
		default:
			s.saw(s.T, g, writes)
			if writes && s.chance(2) {
				s.readOn(l, g)
			}
			s.hold(g)
			return
		}
	}
}

// readOn reads under a write grant, on a goroutine of its own, for longer than that
// or not.
func (s *simulation) readOn(l *rwlock.RWLock, w *recipes.Grant) {
	ctx, cancel := context.WithCancel(w.Context(context.Background()))
	defer cancel()
	if s.chance(4) {
		time.AfterFunc(s.ms(30), cancel)
	}
	r, err := l.RLock(ctx)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			s.T.Errorf("under a write grant: %v", err)
		}
	case r.Err() != nil:
		s.release(r)
	default:
		s.saw(s.T, r, false)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.hold(r)
		}()
		if s.chance(2) {
			<-done
		} else {
			s.T.Cleanup(func() { <-done })
		}
	}
}

func (s *simulation) hold(g *recipes.Grant) {
	t := time.NewTimer(s.ms(200))
	defer t.Stop()
	select {
	case <-t.C:
	case <-g.Done():
	}
	if s.chance(2) { // the next attempt need not wait for the confirmation
		go s.release(g)
	} else {
		s.release(g)
	}
}

func (s *simulation) release(g *recipes.Grant) {
	if err := g.Release(context.Background()); err != nil && !errors.Is(err, recipes.ErrRevoked) {
		s.T.Errorf("release: %v", err)
	}
}

// harm does one thing that can go wrong. It never takes a session away from a
// client that is well, nor a node: that no client can know before others do.
func (s *simulation) harm() {
	id := s.sessions[s.number(len(s.sessions))].ID()
	ops := []zktest.Op{zktest.OpCreate2, zktest.OpGetData, zktest.OpMulti, zktest.OpDelete, zktest.OpGetChildren2, zktest.OpSync, zktest.OpExists}
	switch s.number(9) {
	case 0, 1:
		s.Cut(id)
	case 2:
		s.LoseReply(ops[s.number(len(ops))], 1+s.number(5))
	case 3:
		s.LoseRequest(ops[s.number(len(ops))], 1+s.number(5))
	case 4:
		s.Delay(s.ms(20))
	case 5:
		s.BlackHole(id, zktest.Direction(1+s.number(3)))
		if s.chance(2) {
			time.Sleep(s.ms(15000))
		}
		s.Heal()
	case 6:
		s.CutOffFollower(id)
		time.Sleep(s.ms(15000))
		s.Heal()
	case 7:
		s.StaleReads(id, true)
	case 8:
		s.Refuse(true)
		s.Cut(0)
		time.Sleep(s.ms(3000))
		s.Refuse(false)
	}
}
