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
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func TestLeaderProclaims(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		el := fresh(e)
		term := elected(e, el, "\x00\xffbinary")
		before := leader(e, el)
		if string(before.Value) != "\x00\xffbinary" {
			t.Errorf("%q", before.Value)
		}
		for i := range 5 {
			v := fmt.Sprintf("%d\xfe\x00", i)
			if err := term.Proclaim(e.T.Context(), []byte(v)); err != nil {
				t.Fatal(err)
			}
			l := leader(e, el)
			if string(l.Value) != v || l.Token != term.Token() || l.ID != before.ID || l.Owner != before.Owner || !l.Since.Equal(before.Since) {
				t.Errorf("%+v", l)
			}
			time.Sleep(time.Minute)
		}
		if err := term.Proclaim(e.T.Context(), nil); err != nil || leader(e, el).Value != nil {
			t.Error(err)
		}
		resign(e, term)
		if err := term.Proclaim(e.T.Context(), nil); !errors.Is(err, recipes.ErrReleased) {
			t.Error(err)
		}
	})
}

func TestAnswersOfProclaimAreLost(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, lose := range []func(*zktest.Server, zktest.Op, int){(*zktest.Server).LoseReply, (*zktest.Server).LoseRequest} {
			locktest.Run(t, func(e *locktest.Env) {
				el := fresh(e)
				term := elected(e, el, "x")
				for i := range n {
					lose(e.Server, zktest.OpMulti, i+1)
				}
				for _, v := range []string{"a", "b"} {
					if err := term.Proclaim(e.T.Context(), []byte(v)); err != nil {
						t.Fatal(err)
					}
					if l := leader(e, el); string(l.Value) != v {
						t.Errorf("%q", l.Value)
					}
				}
				resign(e, term)
			})
		}
	}
}

// An older Proclaim that was given up is carried out late: it must not undo a newer
// one.
func TestProclaimGivenUpComesInLate(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		el := on(e, s)
		term := elected(e, el, "x")
		arrived, release := e.HoldRequest(zktest.OpMulti, 1)
		ctx, cancel := context.WithCancel(e.T.Context())
		done := make(chan error, 1)
		go func() { done <- term.Proclaim(ctx, []byte("old")) }()
		locktest.Await(e, arrived)
		cancel()
		if err := locktest.Await(e, done); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		newer := make(chan error, 1)
		go func() { newer <- term.Proclaim(e.T.Context(), []byte("new")) }()
		synctest.Wait()
		release()
		if err := locktest.Await(e, newer); err != nil {
			t.Error(err)
		}
		if l := leader(e, fresh(e)); string(l.Value) != "new" {
			t.Errorf("%q", l.Value)
		}
		resign(e, term)
	})
}

// The node is gone and its client has not heard: nothing is published, and the
// term ends.
func TestProclaimAfterTheNodeWasDeleted(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		el := fresh(e)
		term := elected(e, el, "x")
		next := start(e, fresh(e), "next")
		e.Queued(2)
		e.Delete(locktest.Path + "/" + leader(e, el).ID)
		if err := term.Proclaim(e.T.Context(), []byte("late")); !errors.Is(err, recipes.ErrRevoked) || !errors.Is(err, recipes.ErrNodeDeleted) {
			t.Error(err)
		}
		if term.Err() == nil {
			t.Error("the term goes on")
		}
		term = next.Term(time.Second)
		if l := leader(e, el); string(l.Value) != "next" {
			t.Errorf("%q", l.Value)
		}
		resign(e, term)
	})
}

// cases 49, 57: the node is gone, and another's stands there under its name.
func TestProclaimAfterTheNodeWasReplaced(t *testing.T) {
	for before := range 3 { // how often it was written to
		for _, mine := range []bool{true, false} { // whether the other one is of the same session
			locktest.Run(t, func(e *locktest.Env) {
				s := e.Open()
				el := on(e, s)
				term := elected(e, el, "x")
				for range before {
					if err := term.Proclaim(e.T.Context(), []byte("y")); err != nil {
						t.Fatal(err)
					}
				}
				node := locktest.Path + "/" + leader(e, el).ID
				owner := e.Open().ID()
				if mine {
					owner = s.ID()
				}
				e.Delete(node)
				e.CreateEphemeral(node, []byte("another's"), owner)
				if err := term.Proclaim(e.T.Context(), []byte("late")); !errors.Is(err, recipes.ErrNodeDeleted) {
					t.Errorf("written %d times, mine %v: %v", before, mine, err)
				}
				if data, _ := e.Data(node); string(data) != "another's" && before > 0 {
					t.Errorf("written %d times, mine %v: the other one's node says %s", before, mine, data)
				}
				if err := term.Err(); !errors.Is(err, recipes.ErrRevoked) {
					t.Errorf("written %d times, mine %v: the term goes on: %v", before, mine, err)
				}
			})
		}
	}
}

// Each Proclaim waits for its own context, and for the end of the term, whatever
// the connection does.
func TestProclaimWhileDisconnected(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		term := elected(e, on(e, s), "x")
		e.BlackHole(s.ID(), zktest.Both)
		start := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(e.T.Context(), time.Second)
				defer cancel()
				if err := term.Proclaim(ctx, []byte("y")); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Second {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
			})
			wg.Go(func() {
				err := term.Proclaim(e.T.Context(), []byte("y"))
				if !errors.Is(err, recipes.ErrSessionLost) {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
				select {
				case <-term.Done():
				default:
					t.Error("the term goes on")
				}
			})
		}
		wg.Wait()
		e.Heal()
		time.Sleep(time.Minute)
	})
}

// The term ends while the answer is awaited: that is waited for no longer.
func TestTermEndsDuringAProclaim(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		term := elected(e, on(e, s, recipes.MaxHold(2*time.Second)), "x")
		e.BlackHole(s.ID(), zktest.Both)
		start := time.Now()
		if err := term.Proclaim(e.T.Context(), []byte("y")); !errors.Is(err, recipes.ErrHeldTooLong) || time.Since(start) > 2*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		e.Heal()
		e.Empty()
	})
}

// Somebody else writes into the node: that is overwritten.
func TestOperatorWritesIntoTheLeadersNode(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		el := fresh(e)
		term := elected(e, el, "x")
		e.Set(locktest.Path+"/"+leader(e, el).ID, []byte("garbage"))
		if l := leader(e, el); l.Value != nil || l.Owner != "garbage" {
			t.Errorf("%+v", l)
		}
		if err := term.Proclaim(e.T.Context(), []byte("y")); err != nil {
			t.Error(err)
		}
		if l := leader(e, el); string(l.Value) != "y" {
			t.Errorf("%+v", l)
		}
		resign(e, term)
	})
}
