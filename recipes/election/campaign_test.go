package election_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/election"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func TestElectedInOrderOfArrival(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		var w locktest.Witness
		watcher := fresh(e)
		cs := inLine(e, 8)
		for i, c := range cs {
			term := c.Term(time.Second)
			w.Saw(t, term.Grant)
			l := leader(e, watcher)
			if string(l.Value) != fmt.Sprint("v", i) || l.Token != term.Token() || l.Owner == "" || l.ID != ids(e, watcher)[0] {
				t.Errorf("leader %d is %+v", i, l)
			}
			if d := time.Since(l.Since); d < 0 || d > time.Second {
				t.Errorf("since %v", d)
			}
			for _, later := range cs[i+1:] {
				if !later.Pending() {
					t.Fatal("two at a time")
				}
			}
			time.Sleep(time.Minute)
			if now := leader(e, watcher); !now.Since.Equal(l.Since) {
				t.Errorf("since %v, then %v", l.Since, now.Since)
			}
			resign(e, term)
		}
		e.Empty()
		if _, err := watcher.Leader(e.T.Context()); !errors.Is(err, election.ErrNoLeader) {
			t.Error(err)
		}
	})
}

// losses are the ways in which a leader can lose its office.
var losses = map[string]struct {
	lose   func(e *locktest.Env, s *session.Session, node string)
	reason error
}{
	"expired":          {func(e *locktest.Env, s *session.Session, _ string) { e.Expire(s.ID()) }, recipes.ErrSessionLost},
	"cut off":          {func(e *locktest.Env, s *session.Session, _ string) { e.BlackHole(s.ID(), zktest.Both) }, recipes.ErrSessionLost},
	"follower cut off": {func(e *locktest.Env, s *session.Session, _ string) { e.CutOffFollower(s.ID()) }, recipes.ErrSessionLost},
	"closed":           {func(e *locktest.Env, s *session.Session, _ string) { s.Close() }, recipes.ErrSessionClosed},
	"node deleted":     {func(e *locktest.Env, s *session.Session, node string) { e.Delete(node) }, recipes.ErrNodeDeleted},
	"held too long":    {func(e *locktest.Env, s *session.Session, node string) { time.Sleep(2 * time.Hour) }, recipes.ErrHeldTooLong},
}

// case 29, case 35, case 40, case 48
func TestLeaderIsToldBeforeTheNextIsElected(t *testing.T) {
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) {
				var w locktest.Witness
				s := e.Open()
				revoked := make(chan recipes.Revocation, 2)
				opts := []recipes.Option{recipes.OnRevoke(func(r recipes.Revocation) { revoked <- r })}
				if name == "held too long" {
					opts = append(opts, recipes.MaxHold(time.Hour))
				}
				first := elected(e, on(e, s, opts...), "first")
				w.Saw(t, first.Grant)
				next := start(e, fresh(e), "next")
				e.Queued(2)
				loss.lose(e, s, locktest.Path+"/"+ids(e, fresh(e))[0])
				term := next.Term(time.Minute)
				if name == "expired" || name == "node deleted" {
					<-first.Done() // its client could not know before
				}
				w.Saw(t, term.Grant)
				if r := locktest.Await(e, revoked); !errors.Is(r.Cause, loss.reason) || r.Token != first.Token() {
					t.Errorf("%+v", r)
				}
				for name, err := range map[string]error{
					"Err": first.Err(), "Proclaim": first.Proclaim(e.T.Context(), []byte("late")), "Resign": first.Resign(e.T.Context()),
				} {
					if !errors.Is(err, recipes.ErrRevoked) || !errors.Is(err, loss.reason) {
						t.Errorf("%s: %v", name, err)
					}
				}
				if l := leader(e, fresh(e)); string(l.Value) != "next" {
					t.Errorf("leader %q", l.Value)
				}
				e.Heal()
				resign(e, term)
				e.Empty()
				time.Sleep(15 * time.Second)
			}, zktest.AllowOpenSessions())
		})
	}
}

// case 70: the session of one that waits is lost.
func TestCandidateLosesItsSession(t *testing.T) {
	for _, fail := range []bool{false, true} {
		locktest.Run(t, func(e *locktest.Env) {
			first := elected(e, fresh(e), "first")
			s := e.Open()
			opts := []recipes.Option{recipes.Owner("me")}
			if fail {
				opts = append(opts, recipes.FailOnLoss())
			}
			mine := start(e, on(e, s, opts...), "mine")
			e.Queued(2)
			for range 3 {
				e.Expire(s.ID())
				if fail {
					mine.Fails(time.Minute, recipes.ErrSessionLost)
					resign(e, first)
					return
				}
				time.Sleep(time.Minute)
				if cs, _ := fresh(e).Contenders(e.T.Context()); len(cs) != 2 || cs[1].Owner != "me" {
					t.Errorf("in line: %+v", cs)
				}
			}
			resign(e, first)
			resign(e, mine.Term(time.Second))
			e.Empty()
		})
	}
}

// ways are those that a campaign can go, up to where it ends or is given up.
var ways = map[string]struct {
	opts []recipes.Option
	held bool // by another, for two seconds more
	heir bool // who names another, who stands behind, as its successor
}{
	"free":             {},
	"held":             {held: true},
	"free, with delay": {opts: []recipes.Option{recipes.LockDelay(time.Hour)}},
	"gives way":        {held: true, heir: true},
	"gives way, delay": {held: true, heir: true, opts: []recipes.Option{recipes.LockDelay(time.Hour)}},
}

// case 71: the context ends, or the connection breaks, with each request that the
// server sees.
func TestCampaignIsInterruptedAtEachRequest(t *testing.T) {
	for name, way := range ways {
		for _, how := range []string{"cancel", "cut"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				steps := 1
				for step := 1; step <= steps; step++ {
					locktest.Run(t, func(e *locktest.Env) {
						var first *election.Term
						var heir *campaign
						if way.held {
							first = elected(e, fresh(e), "first")
						}
						s := e.Open()
						var n atomic.Int32
						ctx, cancel := context.WithCancel(e.T.Context())
						defer cancel()
						e.OnRequest(func(r zktest.Request) {
							if r.Session == s.ID() && r.Op != zktest.OpPing {
								if now := int(n.Add(1)); now == step && how == "cancel" {
									cancel()
								} else if now == step {
									go e.Cut(s.ID())
								}
							}
						})
						mine := startContext(ctx, e, on(e, s, way.opts...), "mine")
						if way.held {
							time.Sleep(time.Second)
							other := fresh(e)
							if way.heir {
								heir = start(e, other, "heir")
								time.Sleep(time.Second)
								in := ids(e, other)
								if err := first.ResignTo(e.T.Context(), in[len(in)-1]); err != nil {
									t.Error(err)
								}
								term := heir.Term(time.Minute)
								time.Sleep(time.Second)
								resign(e, term)
							} else {
								resign(e, first)
							}
						}
						if g, err := mine.Result(); err == nil {
							time.Sleep(time.Second)
							e.Release(g)
						} else if !errors.Is(err, context.Canceled) || how == "cut" {
							t.Errorf("step %d: %v", step, err)
						}
						e.OnRequest(nil)
						if step == 1 {
							steps = 30
						}
						if int(n.Load()) < step {
							steps = step
						}
						e.Empty()
						if _, err := fresh(e).Leader(e.T.Context()); !errors.Is(err, election.ErrNoLeader) {
							t.Errorf("step %d: %v", step, err)
						}
						if l, err := fresh(e).TryCampaign(e.T.Context(), nil); err != nil {
							t.Errorf("step %d: %v, record %s", step, err, e.Tree())
						} else {
							resign(e, l)
						}
					})
				}
				if steps < 3 || steps == 30 {
					t.Errorf("%d steps", steps)
				}
			})
		}
	}
}

// case 71: a Resign that can't be confirmed says so, and is carried out.
func TestResignedWhileDisconnected(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		term := elected(e, on(e, s), "x")
		next := start(e, fresh(e), "next")
		e.Queued(2)
		e.BlackHole(s.ID(), zktest.Both)
		ctx, cancel := context.WithTimeout(e.T.Context(), time.Second)
		defer cancel()
		if err := term.Resign(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, recipes.ErrRevoked) {
			t.Errorf("Resign: %v", err)
		}
		if !errors.Is(term.Err(), recipes.ErrReleased) {
			t.Error(term.Err())
		}
		if err := term.Proclaim(e.T.Context(), nil); !errors.Is(err, recipes.ErrReleased) {
			t.Errorf("Proclaim: %v", err)
		}
		e.Heal()
		resign(e, next.Term(time.Minute))
		resign(e, term) // confirmed by now
		e.Empty()
	})
}
