package rwlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/session"
)

// case 58, case 59: foreign contenders take part, odd names don't.
func TestOtherLibrariesTakePart(t *testing.T) {
	run(t, func(e *env) {
		other := e.Open().ID()
		l := e.own()
		e.Release(e.write(l))
		queue := func(kind string) string {
			st, _ := e.Stat(locktest.Path)
			seq := int64((uint32(st.Cversion) + uint32(st.NumChildren)) / 2)
			path := locktest.Path + "/_c_5f2c1f9e-8c26-4d3f-9d8c-0a8e6c0f5b11-" + kind + digits(seq)
			if err := e.CreateEphemeral(path, []byte("them"), other); err != nil {
				t.Fatal(err)
			}
			return path
		}
		for _, name := range []string{"config", "__READ__", "x-__WRIT__12", "-__WRIT__000000000x"} {
			e.Create(locktest.Path+"/"+name, nil)
		}
		r := queue("__READ__")
		e.Release(e.Start(l.TryRLock).Grant(time.Second))
		e.Start(l.TryLock).Fails(time.Second, recipes.ErrBusy)
		w := e.later(l.Lock, 6)
		e.waits(w)
		e.Delete(r)
		g := w.Grant(time.Second)
		w1 := queue("__WRIT__")
		ours := e.later(l.RLock, 7)
		w2 := queue("__WRIT__")
		last := e.later(e.own().Lock, 9)
		e.Release(g)
		e.waits(ours, last)
		e.Delete(w1)
		g = ours.Grant(time.Second)
		e.waits(last)
		e.Delete(w2)
		e.waits(last)
		e.Release(g)
		e.Release(last.Grant(time.Second))
	})
}

func digits(n int64) string {
	s := "0000000000"
	for i := 9; n > 0; i-- {
		s = s[:i] + string('0'+byte(n%10)) + s[i+1:]
		n /= 10
	}
	return s
}

// ErrConflict: a path of another recipe, and ours for the others.
func TestPathOfAnotherRecipe(t *testing.T) {
	for name, prepare := range map[string]func(e *env){
		"record":      func(e *env) { e.Create(locktest.Path, []byte("lockkeeper mutex released=3")) },
		"go":          func(e *env) { e.Create(locktest.Path+"/_c_1-lock-0000000000", nil) },
		"kazoo":       func(e *env) { e.Create(locktest.Path+"/1__lock__0000000000", nil) },
		"kazoo reads": func(e *env) { e.Create(locktest.Path+"/1__rlock__0000000000", nil) },
		"ephemeral":   func(e *env) { e.CreateEphemeral(locktest.Path, nil, e.Open().ID()) },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(e *env) {
				prepare(e)
				before := e.Tree()
				l := e.own()
				for _, lock := range []acquire{l.Lock, l.TryLock, l.RLock, l.TryRLock} {
					if _, err := lock(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
						t.Error(err)
					}
				}
				if after := e.Tree(); after != before {
					t.Errorf("before:\n%s\nafter:\n%s", before, after)
				}
			})
		})
	}
	for _, write := range []bool{false, true} {
		run(t, func(e *env) {
			l := e.own()
			g := e.read(l)
			if write {
				e.Release(g)
				g = e.write(l)
			}
			m := e.New()
			if _, err := m.Lock(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
				t.Error(err)
			}
			if _, err := m.TryLock(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
				t.Error(err)
			}
			e.Release(g)
			e.Empty()
		})
	}
}

// Bad input is an error before anything is sent.
func TestBadInput(t *testing.T) {
	run(t, func(e *env) {
		s := e.Open()
		e.ResetCounts()
		for name, c := range map[string]struct {
			s    *session.Session
			path string
			opts []recipes.Option
		}{
			"no session":      {nil, "/x", nil},
			"no path":         {s, "", nil},
			"relative":        {s, "x", nil},
			"ends in a slash": {s, "/x/", nil},
			"dots":            {s, "/x/../y", nil},
			"nil option":      {s, "/x", []recipes.Option{nil}},
			"hold":            {s, "/x", []recipes.Option{recipes.MaxHold(0)}},
			"delay":           {s, "/x", []recipes.Option{recipes.LockDelay(-1)}},
			"not for it":      {s, "/x", []recipes.Option{recipes.Extension(3)}},
		} {
			l, err := rwlock.New(c.s, c.path, c.opts...)
			if l != nil || !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("%s: %v, %v", name, l, err)
			}
		}
		if n := e.Requests().Total(); n > 0 {
			t.Errorf("%d requests", n)
		}
	})
}
