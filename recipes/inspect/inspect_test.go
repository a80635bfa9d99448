package inspect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/election"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/group"
	"github.com/lockkeeper/lockkeeper/recipes/inspect"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/rwlock"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func observer(e *locktest.Env, s *session.Session) *inspect.Observer {
	e.T.Helper()
	o, err := inspect.New(s, locktest.Path)
	if err != nil {
		e.T.Fatal(err)
	}
	return o
}

func look(e *locktest.Env, o *inspect.Observer) inspect.Queue {
	e.T.Helper()
	q, err := o.Look(e.T.Context())
	if err != nil {
		e.T.Fatal(err)
	}
	return q
}

// line writes a queue as "recipe: owner=place …", with what else there is to tell.
func line(q inspect.Queue) string {
	var b strings.Builder
	b.WriteString(q.Recipe)
	if q.Size > 0 {
		fmt.Fprintf(&b, "(%d)", q.Size)
	}
	for _, c := range q.Contenders {
		fmt.Fprintf(&b, " %s=%d", c.Owner, c.Place)
		if (c.Place == 0) != c.Holding {
			b.WriteString("!")
		}
		if c.Flow != "" {
			b.WriteString("@" + c.Flow)
		}
		if c.Kind != "lock" {
			b.WriteString("/" + c.Kind)
		}
		if c.Permits > 0 {
			fmt.Fprintf(&b, "/%d%v", c.Permits, c.Slots)
		}
	}
	return b.String()
}

// A site is where a test puts contenders at locktest.Path, each with a session of its
// own.
type site struct {
	*locktest.Env
	n int
}

// queue starts lock, and waits until it is in line.
func (s *site) queue(lock func(context.Context) (*recipes.Grant, error)) *locktest.Attempt {
	s.T.Helper()
	a := s.Start(lock)
	s.n++
	s.Queued(s.n)
	return a
}

func must[T any](s *site, v T, err error) T {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
	return v
}

func (s *site) rw(owner string) *rwlock.RWLock {
	l, err := rwlock.New(s.Open(), locktest.Path, recipes.Owner(owner))
	return must(s, l, err)
}

func (s *site) sem(owner string) *semaphore.Semaphore {
	l, err := semaphore.New(s.Open(), locktest.Path, 3, recipes.Owner(owner))
	return must(s, l, err)
}

func (s *site) fair(owner, flow string, weight int) *fair.Lock {
	l, err := fair.New(s.Open(), locktest.Path, recipes.Owner(owner), fair.Flow(flow, weight))
	return must(s, l, err)
}

// finish releases what was granted, one after the other.
func (s *site) finish(as ...*locktest.Attempt) {
	for _, a := range as {
		if g, err := a.Result(); err == nil {
			synctest.Wait() // who comes after it through a gate does so now
			s.Release(g)
		}
	}
	synctest.Wait() // a place before a gate is given up in the background
}

func TestKinds(t *testing.T) {
	acquire := func(s *semaphore.Semaphore, n int) func(context.Context) (*recipes.Grant, error) {
		return func(ctx context.Context) (*recipes.Grant, error) { return s.AcquireN(ctx, n) }
	}
	for name, tt := range map[string]struct {
		fill func(s *site) []*locktest.Attempt // the last ones wait for the first ones
		want string
	}{
		"mutex": {func(s *site) []*locktest.Attempt {
			return []*locktest.Attempt{s.queue(s.New(recipes.Owner("a")).Lock), s.queue(s.New(recipes.Owner("b")).Lock), s.queue(s.New(recipes.Owner("c")).Lock)}
		}, "mutex a=0 b=1 c=2"},
		"rwlock": {func(s *site) []*locktest.Attempt {
			return []*locktest.Attempt{s.queue(s.rw("a").RLock), s.queue(s.rw("b").RLock), s.queue(s.rw("c").Lock), s.queue(s.rw("d").RLock)}
		}, "rwlock a=0/read b=0/read c=1/write d=2/read"},
		"semaphore": {func(s *site) []*locktest.Attempt {
			return []*locktest.Attempt{s.queue(acquire(s.sem("a"), 2)), s.queue(acquire(s.sem("b"), 2)), s.queue(acquire(s.sem("c"), 1))}
		}, "semaphore(3) a=0/lease/2[0 1] b=1/lease/2[] c=2/lease/1[]"},
		"election": {func(s *site) []*locktest.Attempt {
			campaign := func(owner string) func(context.Context) (*recipes.Grant, error) {
				e, err := election.New(s.Open(), locktest.Path, recipes.Owner(owner))
				must(s, e, err)
				return func(ctx context.Context) (*recipes.Grant, error) {
					t, err := e.Campaign(ctx, nil)
					if err != nil {
						return nil, err
					}
					return t.Grant, nil
				}
			}
			return []*locktest.Attempt{s.queue(campaign("a")), s.queue(campaign("b"))}
		}, "election a=0/candidate b=1/candidate"},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) {
				s := &site{Env: e}
				o := observer(e, e.Open())
				if got := line(look(e, o)); got != "" {
					t.Errorf("before: %q", got)
				}
				as := tt.fill(s)
				if got := line(look(e, o)); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				s.finish(as...)
				if q := look(e, o); len(q.Contenders) > 0 || q.Recipe != name {
					t.Errorf("afterwards: %+v", q)
				}
			})
		})
	}
}

// Those who wait before the gates of their flows are in line, too: the holder of a,
// one of each flow in the lock's queue, and the rest in the order of service.
func TestFlows(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := &site{Env: e}
		o := observer(e, e.Open())
		var as []*locktest.Attempt
		for _, c := range []struct {
			owner, flow string
			weight      int
		}{{"a1", "a", 1}, {"a2", "a", 1}, {"a3", "a", 1}, {"a4", "a", 1}, {"b1", "b/x", 1}, {"b2", "b/x", 1}} {
			as = append(as, e.Start(s.fair(c.owner, c.flow, c.weight).Lock))
			synctest.Wait()
			time.Sleep(time.Second)
		}
		want := "fair a1=0@a a2=1@a b1=2@b/x a3=3@a b2=4@b/x a4=5@a"
		if got := line(look(e, o)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		s.finish(as[0], as[1], as[4], as[2], as[5], as[3])
		if got := line(look(e, o)); got != "fair" {
			t.Errorf("afterwards: %s", got)
		}
	})
}

// Ages are counted by the server's clock, as far as it is known, and by places that
// were really taken then.
func TestTimes(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := &site{Env: e}
		a := s.queue(s.New(recipes.Owner("a")).Lock)
		began := time.Now()
		time.Sleep(time.Minute)
		m := e.Open()
		b := s.queue(e.Mutex(m, recipes.Owner("b")).Lock)
		time.Sleep(time.Second)
		q := look(e, observer(e, m))
		if q.Contenders[0].Age != 61*time.Second || q.Contenders[1].Age != time.Second || !q.Contenders[0].Since.Equal(began) || !q.Time.Equal(time.Now()) {
			t.Errorf("%+v, %v after %v", q, time.Now(), began)
		}
		if q.Contenders[0].Mine || !q.Contenders[1].Mine {
			t.Errorf("mine: %+v", q.Contenders)
		}
		later := q.At(q.Time.Add(time.Minute))
		if later.Contenders[0].Age != 121*time.Second || q.Contenders[0].Age != 61*time.Second {
			t.Errorf("a minute later %v, and now %v", later.Contenders[0].Age, q.Contenders[0].Age)
		}
		s.finish(a, b)
	})
}

func TestJSON(t *testing.T) {
	at := time.Date(2026, 3, 1, 9, 30, 10, 250e6, time.UTC)
	for want, q := range map[string]inspect.Queue{
		`{"path":"/locks/a","time":"2026-03-01T09:30:10.25Z","contenders":[]}`: {Path: "/locks/a", Time: at, Contenders: []inspect.Contender{}},
		`{"path":"/locks/gpu","recipe":"semaphore","size":2,"time":"2026-03-01T09:30:10.25Z","contenders":[` +
			`{"place":0,"holding":true,"owner":"web1/4711","flow":"x","kind":"lease","token":4294967299,"permits":1,"slots":[0],` +
			`"since":"2026-03-01T09:30:00Z","mine":true,"id":"3e8c1-lease-0000000004","age_ms":10250}]}`: {
			Path: "/locks/gpu", Recipe: inspect.Semaphore, Size: 2, Time: at, Contenders: []inspect.Contender{{
				Holding: true, Owner: "web1/4711", Flow: "x", Kind: "lease", Token: 4294967299, Permits: 1, Slots: []int{0},
				Since: at.Add(-10250 * time.Millisecond), Age: 10250 * time.Millisecond, Mine: true, ID: "3e8c1-lease-0000000004",
			}}},
	} {
		got, err := json.Marshal(q)
		if string(got) != want || err != nil {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
		var back inspect.Queue
		if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, q) {
			t.Errorf("read again: %+v, %v", back, err)
		}
	}
	locktest.Run(t, func(e *locktest.Env) {
		got, err := json.Marshal(look(e, observer(e, e.Open())))
		if !strings.Contains(string(got), `"contenders":[]`) || err != nil {
			t.Errorf("nobody in line: %s, %v", got, err)
		}
	})
}

func TestNoLock(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(e *locktest.Env) error
		is   error
		text string
	}{
		"a directory of locks": {func(e *locktest.Env) error { return e.Create(locktest.Path+"/orders", nil) }, inspect.ErrNoLock, `such as "orders"`},
		"data": {func(e *locktest.Env) error {
			return errors.Join(e.Create(locktest.Path, []byte("x=1")))
		}, inspect.ErrNoLock, "somebody else's data"},
		"a group": {func(e *locktest.Env) error {
			g, err := group.New(e.Open(), locktest.Path)
			if err == nil {
				_, err = g.Join(e.T.Context(), nil)
			}
			return err
		}, inspect.ErrNoLock, "its recipe is group"},
		"two recipes": {func(e *locktest.Env) error {
			return errors.Join(e.Set(locktest.Path, []byte("lockkeeper mutex")), e.Create(locktest.Path+"/x__READ__0000000000", nil))
		}, recipes.ErrConflict, "another recipe"},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, func(e *locktest.Env) {
				e.Create("/locks", nil)
				if strings.HasPrefix(name, "two") || strings.HasPrefix(name, "a directory") {
					e.Create(locktest.Path, nil)
				}
				if err := tt.make(e); err != nil {
					t.Fatal(err)
				}
				o := observer(e, e.Open())
				_, err := o.Look(e.T.Context())
				var detail *recipes.Error
				if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.text) || strings.Count(err.Error(), "lockkeeper: ") != 1 || !errors.As(err, &detail) || detail.Path != locktest.Path {
					t.Errorf("%v", err)
				}
				n := 0
				for _, err := range o.Watch(e.T.Context(), time.Second) {
					if n++; !errors.Is(err, tt.is) {
						t.Error(err)
					}
				}
				if n != 1 {
					t.Errorf("%d elements", n)
				}
			})
		})
	}
}

// Bad input is refused, and nothing is sent.
func TestInput(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		synctest.Wait()
		e.ResetCounts()
		_, noSession := inspect.New(nil, "/locks/a")
		_, noPath := inspect.New(s, "locks/a")
		var tooOften error
		for _, err := range observer(e, s).Watch(e.T.Context(), time.Millisecond) {
			tooOften = err
		}
		for _, err := range []error{noSession, noPath, tooOften} {
			if !errors.Is(err, recipes.ErrInvalid) {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithCancel(e.T.Context())
		cancel()
		if _, err := observer(e, s).Look(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := e.Requests().Total(); n > 0 {
			t.Errorf("%d requests", n)
		}
	})
}
