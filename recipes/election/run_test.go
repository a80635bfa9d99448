package election_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/election"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// A runner is a Run under way, whose fn does what it is told.
type runner struct {
	e      *locktest.Env
	terms  chan *election.Term // of the fn that has begun
	ctxs   chan context.Context
	finish chan func() error // what fn does in the end
	done   chan error
	cancel context.CancelCauseFunc
}

func run(e *locktest.Env, el *election.Election) *runner {
	r := &runner{
		e: e, terms: make(chan *election.Term, 1), ctxs: make(chan context.Context, 1),
		finish: make(chan func() error), done: make(chan error, 1),
	}
	ctx, cancel := context.WithCancelCause(e.T.Context())
	r.cancel = cancel
	go func() {
		defer func() {
			if p := recover(); p != nil {
				r.done <- p.(error)
			}
		}()
		r.done <- el.Run(ctx, func(ctx context.Context, t *election.Term) error {
			r.terms <- t
			r.ctxs <- ctx
			return (<-r.finish)()
		})
	}()
	return r
}

// begun waits for fn to begin.
func (r *runner) begun() (*election.Term, context.Context) {
	r.e.T.Helper()
	return locktest.Await(r.e, r.terms), locktest.Await(r.e, r.ctxs)
}

func (r *runner) ends(f func() error) { r.finish <- f }

func (r *runner) result() error {
	r.e.T.Helper()
	return locktest.Await(r.e, r.done)
}

// candidacies counts those in the queue.
func candidacies(e *locktest.Env, want int) {
	e.T.Helper()
	synctest.Wait()
	if n := len(e.Children(locktest.Path)); n != want {
		e.T.Errorf("%d in the queue, want %d: %q", n, want, e.Children(locktest.Path))
	}
}

func TestRunReturnsWhatItsFunctionDid(t *testing.T) {
	failed := errors.New("failed")
	for _, want := range []error{nil, failed} {
		locktest.Run(t, func(e *locktest.Env) {
			r := run(e, fresh(e, election.Value([]byte("addr"))))
			term, ctx := r.begun()
			if l := leader(e, fresh(e)); string(l.Value) != "addr" || l.Token != term.Token() || ctx.Err() != nil {
				t.Errorf("%+v, %v", l, ctx.Err())
			}
			r.ends(func() error { return want })
			if err := r.result(); err != want {
				t.Errorf("Run: %v, want %v", err, want)
			}
			if !errors.Is(term.Err(), recipes.ErrReleased) || !errors.Is(context.Cause(ctx), recipes.ErrReleased) {
				t.Error(term.Err(), context.Cause(ctx))
			}
			e.Empty()
		})
	}
}

// case 70, case 72: the loss ends fn's context, Run waits for fn, and is a
// candidate again exactly once.
func TestRunLosesItsTerm(t *testing.T) {
	for name, loss := range losses {
		if name == "closed" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) {
				var w locktest.Witness
				s := e.Open()
				r := run(e, on(e, s, recipes.MaxHold(time.Hour)))
				rival := fresh(e)
				for range 3 {
					first, ctx := r.begun()
					w.Saw(t, first.Grant)
					loss.lose(e, s, locktest.Path+"/"+e.Children(locktest.Path)[0])
					<-ctx.Done()
					if !errors.Is(context.Cause(ctx), loss.reason) {
						t.Error(context.Cause(ctx))
					}
					e.Heal()
					time.Sleep(time.Minute)
					candidacies(e, 0) // while fn has not returned
					other := elected(e, rival, "rival")
					w.Saw(t, other.Grant)
					r.ends(ctx.Err)
					time.Sleep(time.Minute)
					candidacies(e, 2)
					resign(e, other)
				}
				last, _ := r.begun()
				w.Saw(t, last.Grant)
				r.ends(func() error { return nil })
				if err := r.result(); err != nil {
					t.Error(err)
				}
				e.Empty()
			}, zktest.AllowOpenSessions())
		})
	}
}

// fn returns before anybody has noticed that the term is lost.
func TestRunFindsAtItsResignationThatTheTermIsLost(t *testing.T) {
	for _, returned := range []error{nil, errors.New("failed")} {
		locktest.Run(t, func(e *locktest.Env) {
			r := run(e, fresh(e))
			_, ctx := r.begun()
			r.ends(func() error {
				e.Delete(locktest.Path + "/" + e.Children(locktest.Path)[0])
				return returned
			})
			_, ctx2 := r.begun()
			if ctx.Err() == nil || ctx2.Err() != nil {
				t.Errorf("the first term: %v, the second: %v", ctx.Err(), ctx2.Err())
			}
			r.ends(func() error { return returned })
			if err := r.result(); err != returned {
				t.Errorf("Run: %v, want %v", err, returned)
			}
			e.Empty()
		})
	}
}

// case 70
func TestRunStepsDownAndStaysACandidate(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		r := run(e, fresh(e))
		for i := range 4 {
			term, ctx := r.begun()
			others := inLine(e, 2)
			r.ends(func() error {
				if i%2 == 0 {
					return term.Resign(context.WithoutCancel(ctx))
				}
				defer term.Resign(ctx) // twice
				return term.ResignTo(context.WithoutCancel(ctx), ids(e, fresh(e))[1])
			})
			led := others[0].Term(time.Second)
			candidacies(e, 3)
			resign(e, led)
			resign(e, others[1].Term(time.Second))
		}
		_, _ = r.begun()
		candidacies(e, 1)
		failed := errors.New("failed")
		r.ends(func() error { return failed })
		if err := r.result(); err != failed {
			t.Error(err)
		}
		e.Empty()

		r = run(e, fresh(e))
		term, _ := r.begun()
		r.ends(func() error { term.Resign(e.T.Context()); return failed })
		if err := r.result(); err != failed {
			t.Error(err)
		}
		e.Empty()
	})
}

func TestContextOfRunEnds(t *testing.T) {
	enough, failed := errors.New("enough"), errors.New("failed")
	for _, leading := range []bool{true, false} {
		for _, returned := range []error{nil, failed} {
			locktest.Run(t, func(e *locktest.Env) {
				var other *election.Term
				if !leading {
					other = elected(e, fresh(e), "other")
				}
				r := run(e, fresh(e))
				if leading {
					term, ctx := r.begun()
					r.cancel(enough)
					<-ctx.Done()
					if term.Err() != nil || context.Cause(ctx) != enough {
						t.Error(term.Err(), context.Cause(ctx))
					}
					time.Sleep(time.Minute)
					candidacies(e, 1) // as long as fn runs
					r.ends(func() error { return returned })
				} else {
					e.Queued(2)
					r.cancel(enough)
				}
				err := r.result()
				if !errors.Is(err, enough) || leading && returned != nil && !errors.Is(err, returned) {
					t.Error(err)
				}
				if other != nil {
					resign(e, other)
				}
				e.Empty()
			})
		}
	}
}

func TestFunctionOfRunPanics(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		boom := errors.New("boom")
		r := run(e, fresh(e))
		r.begun()
		r.ends(func() error { panic(boom) })
		if err := r.result(); err != boom {
			t.Error(err)
		}
		e.Empty()
		r = run(e, fresh(e))
		r.begun()
		r.ends(func() error { runtime.Goexit(); return nil })
		e.Empty()
	})
}

func TestSessionOfRunIsClosed(t *testing.T) {
	for _, leading := range []bool{true, false} {
		locktest.Run(t, func(e *locktest.Env) {
			var other *election.Term
			if !leading {
				other = elected(e, fresh(e), "other")
			}
			s := e.Open()
			r := run(e, on(e, s))
			if leading {
				_, ctx := r.begun()
				s.Close()
				<-ctx.Done()
				r.ends(ctx.Err)
			} else {
				e.Queued(2)
				s.Close()
			}
			if err := r.result(); !errors.Is(err, recipes.ErrSessionClosed) {
				t.Error(err)
			}
			if other != nil {
				resign(e, other)
			}
			e.Empty()
		})
	}
}
