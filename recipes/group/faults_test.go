package group_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/group"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// Join is interrupted with each request.
func TestJoinIsInterruptedAtEachRequest(t *testing.T) {
	for _, how := range []string{"cancel", "cut", "expire"} {
		for step := 1; step <= 8; step++ {
			locktest.Run(t, func(e *locktest.Env) {
				s := e.Open()
				g := on(e, s)
				ctx, cancel := context.WithCancel(e.T.Context())
				defer cancel()
				var n atomic.Int32
				e.OnRequest(func(r zktest.Request) {
					if r.Session == s.ID() && r.Op != zktest.OpPing && int(n.Add(1)) == step {
						switch how {
						case "cancel":
							cancel()
						case "cut":
							go e.Cut(s.ID())
						case "expire":
							go e.Expire(s.ID())
						}
					}
				})
				m, err := g.Join(ctx, []byte("x"))
				e.OnRequest(nil)
				if err == nil {
					time.Sleep(time.Minute)
					if m.Err() == nil && len(e.Children(locktest.Path)) != 1 {
						t.Errorf("step %d: %q", step, e.Children(locktest.Path))
					}
					m.Leave(e.T.Context())
				} else if !errors.Is(err, context.Canceled) || how != "cancel" {
					t.Errorf("step %d: %v", step, err)
				}
				e.Empty()
			})
		}
	}
}

func TestBadArguments(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		e.ResetCounts()
		big := make([]byte, group.MaxData+1)
		for _, o := range []recipes.Option{nil, recipes.Reentrant(), recipes.LockDelay(time.Second), recipes.FailOnLoss(), recipes.Extension(1)} {
			if _, err := group.New(s, "/x", o); !errors.Is(err, recipes.ErrInvalid) {
				t.Error(err)
			}
		}
		if _, err := group.New(nil, "/x"); !errors.Is(err, recipes.ErrInvalid) {
			t.Error(err)
		}
		if _, err := group.New(s, ""); !errors.Is(err, recipes.ErrInvalid) {
			t.Error(err)
		}
		if _, err := on(e, s).Join(e.T.Context(), big); !errors.Is(err, recipes.ErrInvalid) {
			t.Error(err)
		}
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(e.T.Context())
		cancel(cause)
		if _, err := on(e, s).Join(ctx, nil); !errors.Is(err, cause) {
			t.Error(err)
		}
		if n := e.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
		m := join(e, on(e, s), "x")
		if err := m.SetData(e.T.Context(), big); !errors.Is(err, recipes.ErrInvalid) {
			t.Error(err)
		}
		largest := bytes.Repeat([]byte{0xff}, group.MaxData)
		if err := m.SetData(e.T.Context(), largest); err != nil {
			t.Error(err)
		}
		for members := range on(e, s).Members(e.T.Context()) {
			if !bytes.Equal(members[0].Data, largest) {
				t.Errorf("%d bytes came back", len(members[0].Data))
			}
			break
		}
	})
}

func TestPathOfAGroupIsAnothers(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		l := e.Lock(e.New())
		g := on(e, e.Open())
		check := func() {
			t.Helper()
			before := e.Tree()
			if _, err := g.Join(e.T.Context(), nil); !errors.Is(err, recipes.ErrConflict) {
				t.Error(err)
			}
			if e.Tree() != before {
				t.Errorf("written:\n%s", e.Tree())
			}
		}
		check()
		r := read(e, g, nil)
		<-r.ended
		if !errors.Is(r.err, recipes.ErrConflict) {
			t.Error(r.err)
		}
		e.Release(l)
		e.Set(locktest.Path, []byte("hello"))
		check()
		e.Set(locktest.Path, nil)
		e.CreateEphemeral(locktest.Path+"/_c_1-lock-0000000000", nil, e.Open().ID())
		check()
		e.DeleteAll(locktest.Path)
		e.Create(locktest.Path, nil) // empty: it becomes a group
		m := join(e, g, "x")
		if _, err := e.New().Lock(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
		m.Leave(e.T.Context())
	})
}

// Members come, change, go and die at random; in the end all readers know who is
// there.
func TestRandomGroup(t *testing.T) {
	for seed := range 4 {
		locktest.Run(t, func(e *locktest.Env) {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			var sessions []*session.Session
			var readers []*reader
			for i := range 6 {
				sessions = append(sessions, e.Open())
				if i%2 == 0 {
					readers = append(readers, read(e, on(e, sessions[i]), nil))
				}
			}
			var ms []*group.Membership
			for i := range 150 {
				time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
				s := sessions[r.IntN(len(sessions))]
				switch n := r.IntN(16); {
				case n < 5:
					ms = append(ms, join(e, on(e, s), fmt.Sprint(i)))
				case n < 8 && len(ms) > 0:
					ms[r.IntN(len(ms))].SetData(e.T.Context(), fmt.Append(nil, i))
				case n < 10 && len(ms) > 0:
					ms[r.IntN(len(ms))].Leave(e.T.Context())
				case n < 11 && len(e.Children(locktest.Path)) > 0:
					e.Delete(locktest.Path + "/" + e.Children(locktest.Path)[0])
				case n < 12:
					e.Cut(s.ID())
				case n < 13:
					e.Expire(s.ID())
				case n < 14:
					e.LoseReply([]zktest.Op{zktest.OpCreate2, zktest.OpMulti, zktest.OpGetData}[r.IntN(3)], 1)
				}
			}
			time.Sleep(time.Minute)
			var live []recipes.Token
			for _, m := range ms {
				if m.Err() == nil {
					live = append(live, m.Token())
				}
			}
			for i, r := range readers {
				synctest.Wait()
				var seen []recipes.Token
				for _, m := range r.last {
					seen = append(seen, m.Token)
				}
				if fmt.Sprint(seen) != fmt.Sprint(live) {
					t.Errorf("seed %d: reader %d sees %v, there are %v", seed, i, seen, live)
				}
				r.stop()
			}
			for _, m := range ms {
				m.Leave(e.T.Context())
			}
			e.Empty()
		})
	}
}
