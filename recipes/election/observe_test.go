package election_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/election"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func TestObserverSeesEachChange(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		o := observe(e, fresh(e)) // when there is not even the path
		o.expect(t, "-")
		term := elected(e, fresh(e), "a")
		o.expect(t, "a")
		if o.last.Token != term.Token() || o.last.Owner == "" || o.last.Since.IsZero() {
			t.Errorf("%+v", o.last)
		}
		term.Proclaim(e.T.Context(), []byte("a2"))
		o.expect(t, "a2")
		term.Proclaim(e.T.Context(), []byte("a2"))
		o.expect(t) // the same
		late := observe(e, fresh(e))
		late.expect(t, "a2")
		time.Sleep(time.Hour)
		o.expect(t)

		next := start(e, fresh(e), "b")
		e.Queued(2)
		o.expect(t) // candidates are none of its business
		e.Delete(locktest.Path + "/" + o.last.ID)
		b := next.Term(time.Second)
		o.expectAfterVacancy(t, "b")
		late.expectAfterVacancy(t, "b")
		if !errors.Is(term.Err(), recipes.ErrRevoked) {
			t.Error(term.Err())
		}

		e.DeleteAll(locktest.Path)
		o.expect(t, "-")
		<-b.Done()
		term = elected(e, fresh(e), "c")
		o.expect(t, "c")
		resign(e, term)
		o.expect(t, "-")
		time.Sleep(5 * time.Minute)
		if e.Exists(locktest.Path) {
			t.Error("the observers keep the path alive")
		}
		o.expect(t)
		term = elected(e, fresh(e), "d") // the path is made anew
		o.expect(t, "d")
		resign(e, term)
		o.expect(t, "-")
		o.stop()
		late.stop()
		o.expect(t) // the end of ctx is no element
	})
}

// A lock delay is a vacancy, although somebody stands first in line.
func TestObserverDuringALockDelay(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		elected(e, on(e, s, recipes.LockDelay(time.Hour)), "a")
		o := observe(e, fresh(e))
		o.expect(t, "a")
		e.Expire(s.ID())
		c := start(e, fresh(e), "b")
		time.Sleep(time.Minute)
		o.expect(t, "-")
		if _, err := fresh(e).Leader(e.T.Context()); !errors.Is(err, election.ErrNoLeader) {
			t.Error(err)
		}
		term := c.Term(2 * time.Hour)
		o.expect(t, "b")
		o.stop()
		resign(e, term)
	})
}

// A reader who takes its time skips to the latest, and delays nobody.
func TestObserverIsSlow(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		next := make(chan struct{})
		o := observeSlowly(e, fresh(e), next)
		o.expect(t, "-")
		for i := range 5 {
			term := elected(e, fresh(e), fmt.Sprint("v", i))
			term.Proclaim(e.T.Context(), []byte(fmt.Sprint("w", i)))
			if i < 4 {
				resign(e, term)
			}
		}
		next <- struct{}{}
		o.expect(t, "w4")
		close(next)
		o.expect(t)
		o.stop()
	})
}

// It goes on over lost sessions and connections, and sees what it missed.
func TestObserverLosesItsSession(t *testing.T) {
	for name, lose := range map[string]func(e *locktest.Env, id int64){
		"expired":      func(e *locktest.Env, id int64) { e.Expire(id) },
		"disconnected": func(e *locktest.Env, id int64) { e.Cut(id) },
		"hole":         func(e *locktest.Env, id int64) { e.BlackHole(id, zktest.Both); time.Sleep(time.Minute); e.Heal() },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) {
				s := e.Open()
				o := observe(e, on(e, s))
				o.expect(t, "-")
				el := fresh(e)
				term := elected(e, el, "a")
				o.expect(t, "a")
				lose(e, s.ID())
				time.Sleep(time.Minute)
				o.expect(t) // nothing has changed
				lose(e, s.ID())
				term.Proclaim(e.T.Context(), []byte("b"))
				time.Sleep(time.Minute)
				o.expect(t, "b")
				resign(e, term)
				o.expect(t, "-")
				lose(e, s.ID())
				o.take()
				term = elected(e, el, "c")
				time.Sleep(time.Minute)
				o.expect(t, "c")
				resign(e, term)
				o.stop()
			})
		})
	}
}

func TestObserversSessionIsClosed(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		el := on(e, s)
		o := observe(e, el)
		synctest.Wait()
		s.Close()
		<-o.ended
		if !errors.Is(o.err, recipes.ErrSessionClosed) {
			t.Errorf("observed %v", o.take())
		}
		if _, err := el.Leader(e.T.Context()); !errors.Is(err, recipes.ErrSessionClosed) {
			t.Error(err)
		}
	})
}

// The reader stops by itself, or ctx has ended before: nothing is left.
func TestObserverStops(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		el := fresh(e)
		for range el.Observe(e.T.Context()) {
			break
		}
		ctx, cancel := context.WithCancel(e.T.Context())
		cancel()
		e.ResetCounts()
		for range el.Observe(ctx) {
			t.Error("an element although ctx had ended")
		}
		if n := e.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
		if _, err := el.Leader(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// Observers wake no candidate, cost the same however many stand in line, and share
// what they read.
func TestObserversAreNoHerd(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		el := on(e, s)
		term := elected(e, fresh(e), "a")
		const many = 100
		cs := inLine(e, many)
		var os []*observer
		for range 50 {
			os = append(os, observe(e, el))
		}
		for _, o := range os {
			o.expect(t, "a")
		}
		time.Sleep(time.Minute) // until the candidates watch their own nodes
		var mu sync.Mutex
		var observers, others, lists int
		e.OnRequest(func(r zktest.Request) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case r.Op == zktest.OpPing:
			case r.Session == s.ID():
				observers++
			default:
				others++
			}
			if r.Op == zktest.OpGetChildren || r.Op == zktest.OpGetChildren2 {
				lists++
			}
		})
		reset := func() { mu.Lock(); defer mu.Unlock(); observers, others, lists = 0, 0, 0 }

		reset()
		term.Proclaim(e.T.Context(), []byte("b"))
		synctest.Wait()
		mu.Lock()
		t.Logf("Proclaim: observers %d, others %d, lists %d", observers, others, lists)
		if observers != 1 || others > 6 || lists != 0 {
			t.Errorf("Proclaim: observers %d, others %d, lists %d", observers, others, lists)
		}
		mu.Unlock()
		reset()
		resign(e, term)
		second := cs[0].Term(time.Second)
		synctest.Wait()
		mu.Lock()
		t.Logf("resigned: observers %d, others %d, lists %d", observers, others, lists)
		if observers > 4+len(os) || others > 12 || lists != 0 {
			t.Errorf("resigned: observers %d, others %d, lists %d", observers, others, lists)
		}
		mu.Unlock()
		for _, o := range os {
			if got := o.take(); got != "[b - v0]" && got != "[b v0]" {
				t.Errorf("observed %v", got)
			}
			o.stop()
		}
		e.OnRequest(nil)
		for _, c := range cs[1:] {
			c.Cancel()
		}
		resign(e, second)
		e.Empty()
	})
}
