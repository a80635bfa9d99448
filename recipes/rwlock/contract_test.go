package rwlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/guard"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// case 29: readers and writers are told of a loss before those behind them are
// granted; the callbacks run once.
func TestHoldersAreToldBeforeTheNextIsGranted(t *testing.T) {
	for name, lose := range map[string]func(e *env, s *session.Session){
		"expired":              func(e *env, s *session.Session) { e.Expire(s.ID()) },
		"cut off":              func(e *env, s *session.Session) { e.BlackHole(s.ID(), zktest.Both) },
		"hears, but not heard": func(e *env, s *session.Session) { e.BlackHole(s.ID(), zktest.ToServer) },
		"follower cut off":     func(e *env, s *session.Session) { e.CutOffFollower(s.ID()) },
		"closed":               func(e *env, s *session.Session) { s.Close() },
	} {
		for _, held := range []string{"w", "r", "rr", "wr"} { // wr: let in under it
			t.Run(name+" "+held, func(t *testing.T) {
				run(t, func(e *env) {
					var w witness
					s := e.Open()
					revoked := make(chan recipes.Revocation, 10)
					l := e.rw(s, recipes.OnRevoke(func(r recipes.Revocation) { revoked <- r }))
					var grants []*recipes.Grant
					ctx := e.T.Context()
					for _, kind := range held {
						lock := l.RLock
						if kind == 'w' {
							lock = l.Lock
						}
						g := e.StartContext(ctx, lock).Grant(time.Second)
						w.saw(t, g, kind == 'w')
						if kind == 'w' {
							ctx = g.Context(ctx)
						}
						grants = append(grants, g)
					}
					next := e.later(e.own().Lock, len(held)+1)
					time.Sleep(1700 * time.Millisecond)
					lose(e, s)
					g := next.Grant(time.Minute)
					if name == "expired" {
						for _, g := range grants { // nothing had gone wrong before that a client could know
							<-g.Done()
						}
					}
					w.saw(t, g, true)
					for range held {
						if r := locktest.Await(e.Env, revoked); r.Path != locktest.Path || !errors.Is(r.Cause, recipes.ErrRevoked) {
							t.Errorf("%+v", r)
						}
					}
					for _, g := range grants {
						if err := g.Release(e.T.Context()); !errors.Is(err, recipes.ErrRevoked) {
							t.Error(err)
						}
					}
					e.Release(g)
					e.Heal()
					e.Empty()
					if len(revoked) > 0 {
						t.Error("told twice")
					}
				})
			})
		}
	}
}

// case 56: a writer's token is larger than all before, a reader's than those of all
// writers before, also when the directory was made anew.
func TestTokens(t *testing.T) {
	run(t, func(e *env) {
		var w witness
		a, b := e.own(), e.own()
		for range 3 {
			held := e.write(a)
			w.saw(t, held, true)
			next := e.later(b.Lock, 2) // queues before the reader is let in
			r := e.under(a, held)
			w.saw(t, r, false)
			r2 := e.later(b.RLock, 4)
			e.Release(held)
			e.Release(r)
			g := next.Grant(time.Second)
			w.saw(t, g, true)
			e.Release(g)
			g = r2.Grant(time.Second)
			w.saw(t, g, false)
			e.Release(g)
			e.Empty()
			time.Sleep(3 * time.Minute)
			if e.Exists(locktest.Path) {
				t.Error("the directory stays")
			}
		}
	})
}

func TestContendersAndOwners(t *testing.T) {
	run(t, func(e *env) {
		s := e.Open()
		r1, r2 := e.read(e.rw(s, recipes.Owner("one"))), e.read(e.own(recipes.Owner("two")))
		w := e.later(e.rw(s, recipes.Owner("three")).Lock, 3)
		r4 := e.later(e.own(recipes.Owner("four")).RLock, 4)
		cs, err := e.rw(s).Contenders(e.T.Context())
		if err != nil || len(cs) != 4 {
			t.Fatal(cs, err)
		}
		var got []string
		for _, c := range cs {
			s := c.Owner + " " + c.Kind
			if c.Holding {
				s += " holds"
			}
			if c.Mine {
				s += " mine"
			}
			got = append(got, s)
		}
		if want := "one read holds mine, two read holds, three write mine, four read"; strings.Join(got, ", ") != want {
			t.Errorf("%q, want %q", got, want)
		}
		if cs[0].Token != r1.Token() || cs[1].Token != r2.Token() {
			t.Error(cs)
		}
		e.Release(r1)
		e.Release(r2)
		e.Release(w.Grant(time.Second))
		e.Release(r4.Grant(time.Second))
	})
}

// case 57: a guarded write goes through under either side and is refused after.
func TestGuardedWrites(t *testing.T) {
	run(t, func(e *env) {
		l := e.own()
		e.Create("/data", nil)
		w := e.write(l)
		r := e.under(l, w)
		for _, g := range []*recipes.Grant{w, r} {
			op := &zk.SetDataRequest{Path: "/data", Data: []byte("x"), Version: -1}
			if _, err := guard.Multi(e.T.Context(), g, op); err != nil {
				t.Error(err)
			}
			e.Release(g)
			if _, err := guard.Multi(e.T.Context(), g, op); !errors.Is(err, recipes.ErrReleased) {
				t.Error(err)
			}
		}
	})
}

// case 18: a wait that loses its session fails with FailOnLoss, and queues again
// without.
func TestWaiterLosesItsSession(t *testing.T) {
	run(t, func(e *env) {
		g := e.write(e.own())
		s := e.Open()
		fails, stays := e.later(e.rw(s, recipes.FailOnLoss()).RLock, 2), e.later(e.rw(s).RLock, 3)
		writes := e.later(e.rw(s).Lock, 4)
		e.Expire(s.ID())
		fails.Fails(time.Minute, recipes.ErrSessionLost)
		e.waits(stays, writes)
		e.Release(g)
		// They queued again, in whatever order.
		var w *recipes.Grant
		for range 2 {
			time.Sleep(time.Second)
			if !stays.Pending() {
				g, _ := stays.Result()
				e.Release(g)
			}
			if !writes.Pending() {
				w, _ = writes.Result()
				e.Release(w)
			}
		}
		e.Empty()
	})
}

var _ recipes.Lockable = (*rwlock.RWLock)(nil)
var _ recipes.Lockable = (*mutex.Mutex)(nil)
