package group_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/group"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
	"github.com/lockkeeper/lockkeeper/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func on(e *locktest.Env, s *session.Session, opts ...recipes.Option) *group.Group {
	e.T.Helper()
	g, err := group.New(s, locktest.Path, opts...)
	if err != nil {
		e.T.Fatal(err)
	}
	return g
}

func join(e *locktest.Env, g *group.Group, data string) *group.Membership {
	e.T.Helper()
	ctx, cancel := context.WithTimeout(e.T.Context(), time.Minute)
	defer cancel()
	m, err := g.Join(ctx, []byte(data))
	if err != nil {
		e.T.Fatal(err)
	}
	return m
}

// A reader writes down what it sees: the members' data.
type reader struct {
	cancel context.CancelFunc
	ended  chan struct{}
	mu     sync.Mutex
	seen   []string
	last   []group.Member
	err    error
}

func read(e *locktest.Env, g *group.Group, pause chan struct{}) *reader {
	ctx, cancel := context.WithCancel(e.T.Context())
	r := &reader{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		for members, err := range g.Members(ctx) {
			var data []string
			for _, m := range members {
				data = append(data, string(m.Data))
			}
			r.mu.Lock()
			r.last, r.err = members, err
			if r.seen = append(r.seen, strings.Join(data, "+")); err != nil {
				r.seen = append(r.seen, err.Error())
			}
			r.mu.Unlock()
			if pause != nil {
				<-pause
			}
		}
	}()
	return r
}

func (r *reader) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if fmt.Sprintf("%q", r.seen) != fmt.Sprintf("%q", want) {
		t.Errorf("seen %q, want %q", r.seen, want)
	}
	r.seen = nil
}

func (r *reader) stop() {
	r.cancel()
	<-r.ended
}

func TestReaderSeesEachChange(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		r := read(e, on(e, e.Open()), nil) // when there is not even the path
		r.expect(t, "")
		s := e.Open()
		a := join(e, on(e, s, recipes.Owner("me")), "a")
		r.expect(t, "a")
		if m := r.last[0]; m.Owner != "me" || m.Token != a.Token() || m.Mine || m.ID == "" || time.Since(m.Since) > time.Second {
			t.Errorf("%+v", m)
		}
		b := join(e, on(e, s), "b\x00\xff")
		r.expect(t, "a+b\x00\xff")
		if err := b.SetData(e.T.Context(), []byte("B")); err != nil {
			t.Error(err)
		}
		r.expect(t, "a+B")
		time.Sleep(time.Hour)
		c := join(e, on(e, e.Open()), "c")
		r.expect(t, "a+B+c")
		mine := read(e, on(e, s), nil)
		mine.expect(t, "a+B+c")
		if m := mine.last; !m[0].Mine || !m[1].Mine || m[2].Mine {
			t.Errorf("%+v", m)
		}
		if err := a.Leave(e.T.Context()); err != nil {
			t.Error(err)
		}
		r.expect(t, "B+c")
		for _, err := range []error{a.Err(), a.SetData(e.T.Context(), nil)} {
			if !errors.Is(err, recipes.ErrReleased) {
				t.Error(err)
			}
		}
		e.DeleteAll(locktest.Path)
		synctest.Wait()
		<-b.Done()
		<-c.Done()
		if last := fmt.Sprint(r.last); last != "[]" {
			t.Error(last)
		}
		r.expect(t, append([]string{}, r.seen...)...)
		d := join(e, on(e, s), "d")
		r.expect(t, "d")
		d.Leave(e.T.Context())
		r.expect(t, "")
		time.Sleep(5 * time.Minute)
		if e.Exists(locktest.Path) {
			t.Error("the readers keep the path alive")
		}
		join(e, on(e, s), "f").Leave(e.T.Context())
		r.stop()
		mine.stop()
	})
}

// A membership ends before the others can see it gone.
func TestMemberIsToldOfItsEnd(t *testing.T) {
	for name, loss := range map[string]struct {
		lose   func(e *locktest.Env, s *session.Session)
		reason error
	}{
		"cut off":          {func(e *locktest.Env, s *session.Session) { e.BlackHole(s.ID(), zktest.Both) }, recipes.ErrSessionLost},
		"follower cut off": {func(e *locktest.Env, s *session.Session) { e.CutOffFollower(s.ID()) }, recipes.ErrSessionLost},
		"closed":           {func(e *locktest.Env, s *session.Session) { s.Close() }, recipes.ErrSessionClosed},
		"held too long":    {func(e *locktest.Env, s *session.Session) { time.Sleep(time.Hour) }, recipes.ErrHeldTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) {
				s := e.Open()
				told := make(chan recipes.Revocation, 2)
				opts := []recipes.Option{recipes.OnRevoke(func(r recipes.Revocation) { told <- r })}
				if name == "held too long" {
					opts = append(opts, recipes.MaxHold(time.Hour))
				}
				m := join(e, on(e, s, opts...), "x")
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					for members, err := range on(e, e.Open()).Members(e.T.Context()) {
						if err != nil || len(members) == 0 {
							if m.Err() == nil {
								t.Error("a member that is gone does not know")
							}
							return
						}
					}
				}()
				synctest.Wait()
				loss.lose(e, s)
				<-gone
				if r := locktest.Await(e, told); !errors.Is(r.Cause, loss.reason) || !errors.Is(m.Leave(e.T.Context()), loss.reason) {
					t.Error(r.Cause, m.Leave(e.T.Context()))
				}
				e.Heal()
				if name != "closed" {
					join(e, on(e, s), "again").Leave(e.T.Context())
				}
				e.Empty()
				time.Sleep(15 * time.Second)
			}, zktest.AllowOpenSessions())
		})
	}
}

func TestOperatorDeletesAMember(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		m := join(e, on(e, e.Open()), "x")
		e.Delete(locktest.Path + "/" + e.Children(locktest.Path)[0])
		if err := m.SetData(e.T.Context(), []byte("y")); !errors.Is(err, recipes.ErrNodeDeleted) || m.Err() == nil {
			t.Error(err)
		}
		e.Empty()
	})
}

// Another's node has the name.
func TestDataAreSetAfterTheNodeWasReplaced(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		m := join(e, on(e, s), "x")
		if err := m.SetData(e.T.Context(), []byte("y")); err != nil {
			t.Fatal(err)
		}
		node := locktest.Path + "/" + e.Children(locktest.Path)[0]
		e.Delete(node)
		e.CreateEphemeral(node, nil, s.ID())
		if err := m.SetData(e.T.Context(), []byte("late")); !errors.Is(err, recipes.ErrNodeDeleted) {
			t.Error(err)
		}
		if data, _ := e.Data(node); data != nil {
			t.Errorf("the other one's node says %s", data)
		}
		if err := m.Err(); !errors.Is(err, recipes.ErrRevoked) {
			t.Errorf("the membership goes on: %v", err)
		}
	})
}

func TestReaderLosesItsSession(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		r := read(e, on(e, s), nil)
		m := join(e, on(e, e.Open()), "x")
		synctest.Wait()
		r.mu.Lock()
		r.seen = nil
		r.mu.Unlock()
		for i, lose := range []func(int64){e.Cut, func(id int64) { e.Expire(id) }} {
			lose(s.ID())
			time.Sleep(time.Minute)
			r.expect(t) // nothing has changed
			lose(s.ID())
			m.SetData(e.T.Context(), fmt.Append(nil, i))
			time.Sleep(time.Minute)
			r.expect(t, fmt.Sprint(i))
		}
		s.Close()
		<-r.ended
		if !errors.Is(r.err, recipes.ErrSessionClosed) {
			t.Error(r.err)
		}
		m.Leave(e.T.Context())
	})
}

func TestReaderIsSlow(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		next := make(chan struct{})
		r := read(e, on(e, e.Open()), next)
		r.expect(t, "")
		var ms []*group.Membership
		for i := range 5 {
			ms = append(ms, join(e, on(e, e.Open()), fmt.Sprint(i)))
		}
		ms[1].Leave(e.T.Context())
		next <- struct{}{}
		r.expect(t, "0+2+3+4")
		close(next)
		r.stop()
	})
}

// What a change costs a reader does not grow with the number of readers in its
// session; members watch nobody. The server tells first of a member that has gone and
// then of the list: readers that wake in between ask once for the one that is no more.
func TestReadersShare(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		var ms []*group.Membership
		for i := range 50 {
			ms = append(ms, join(e, on(e, e.Open()), fmt.Sprint(i)))
		}
		var rs []*reader
		for range 20 {
			rs = append(rs, read(e, on(e, s), nil))
		}
		synctest.Wait()
		time.Sleep(time.Minute) // until the members watch their own nodes
		var reads, others, vain atomic.Int32
		leaves := locktest.Path + "/" + e.Children(locktest.Path)[7]
		e.OnRequest(func(r zktest.Request) {
			switch {
			case r.Op == zktest.OpPing || r.Op == zktest.OpMulti: // heartbeats
			case r.Session == s.ID() && r.Path == leaves && !e.Exists(leaves):
				vain.Add(1)
			case r.Session == s.ID():
				reads.Add(1)
			default:
				others.Add(1)
			}
		})
		for _, step := range []struct {
			happens       func()
			reads, others int32
		}{
			{func() { ms[7].SetData(e.T.Context(), []byte("x")) }, 1, 1}, // the member's own watch
			{func() { ms[7].Leave(e.T.Context()) }, 1, 1},
			{func() { ms[8] = join(e, on(e, s), "new") }, 6, 0}, // 4 of Join's own
		} {
			reads.Store(0)
			others.Store(0)
			step.happens()
			synctest.Wait()
			if r, o := reads.Load(), others.Load(); r > step.reads || o > step.others {
				t.Errorf("%d requests of the readers, want %d; %d of others, want %d", r, step.reads, o, step.others)
			}
		}
		if n := vain.Load(); n > int32(len(rs)) {
			t.Errorf("%d readers ask %d times for one that has gone", len(rs), n)
		}
		e.OnRequest(nil)
		for _, r := range rs {
			r.stop()
		}
	})
}
