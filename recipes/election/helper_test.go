package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/election"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func on(e *locktest.Env, s *session.Session, opts ...recipes.Option) *election.Election {
	e.T.Helper()
	el, err := election.New(s, locktest.Path, opts...)
	if err != nil {
		e.T.Fatal(err)
	}
	return el
}

// fresh returns an election with a session for itself.
func fresh(e *locktest.Env, opts ...recipes.Option) *election.Election {
	e.T.Helper()
	return on(e, e.Open(), opts...)
}

// A campaign is one under way.
type campaign struct {
	*locktest.Attempt
	e    *locktest.Env
	term *election.Term
}

func start(e *locktest.Env, el *election.Election, value string) *campaign {
	return startContext(e.T.Context(), e, el, value)
}

func startContext(ctx context.Context, e *locktest.Env, el *election.Election, value string) *campaign {
	c := &campaign{e: e}
	c.Attempt = e.StartContext(ctx, func(ctx context.Context) (*recipes.Grant, error) {
		t, err := el.Campaign(ctx, []byte(value))
		if (t == nil) == (err == nil) {
			e.T.Errorf("term %v together with error %v", t, err)
		}
		if err != nil {
			return nil, err
		}
		c.term = t
		return t.Grant, nil
	})
	return c
}

// Term returns what was won, which must be so within d.
func (c *campaign) Term(d time.Duration) *election.Term {
	c.e.T.Helper()
	c.Grant(d)
	return c.term
}

func elected(e *locktest.Env, el *election.Election, value string) *election.Term {
	e.T.Helper()
	return start(e, el, value).Term(time.Minute)
}

// inLine starts n campaigns, one after the other, each with a session of its own.
func inLine(e *locktest.Env, n int, opts ...recipes.Option) []*campaign {
	e.T.Helper()
	before := 0
	for _, name := range e.Children(locktest.Path) {
		if !strings.HasPrefix(name, "delay-") { // the keeper of a lock delay
			before++
		}
	}
	var cs []*campaign
	for i := range n {
		cs = append(cs, start(e, fresh(e, opts...), fmt.Sprint("v", i)))
		e.Queued(before + i + 1)
	}
	return cs
}

func leader(e *locktest.Env, el *election.Election) election.Leader {
	e.T.Helper()
	l, err := el.Leader(e.T.Context())
	if err != nil {
		e.T.Fatal(err)
	}
	return l
}

func ids(e *locktest.Env, el *election.Election) (ids []string) {
	e.T.Helper()
	cs, err := el.Contenders(e.T.Context())
	if err != nil {
		e.T.Fatal(err)
	}
	for _, c := range cs {
		ids = append(ids, c.ID)
	}
	return ids
}

// An observer writes down what it sees: the value of the leader, "-" for a
// vacancy, "!" and an error.
type observer struct {
	cancel context.CancelFunc
	ended  chan struct{}

	mu    sync.Mutex
	seen  []string
	last  election.Leader
	err   error
	pause chan struct{} // if not nil, each element is read after a value from it
}

func observe(e *locktest.Env, el *election.Election) *observer { return observeSlowly(e, el, nil) }

func observeSlowly(e *locktest.Env, el *election.Election, pause chan struct{}) *observer {
	ctx, cancel := context.WithCancel(e.T.Context())
	o := &observer{cancel: cancel, ended: make(chan struct{}), pause: pause}
	go func() {
		defer close(o.ended)
		for l, err := range el.Observe(ctx) {
			o.mu.Lock()
			o.last, o.err = l, err
			switch {
			case err == nil:
				o.seen = append(o.seen, string(l.Value))
			case errors.Is(err, election.ErrNoLeader):
				o.seen = append(o.seen, "-")
			default:
				o.seen = append(o.seen, "!"+err.Error())
			}
			o.mu.Unlock()
			if o.pause != nil {
				select {
				case <-o.pause:
				case <-ctx.Done():
				}
			}
		}
	}()
	return o
}

// take returns what was seen since the last time, when nothing more happens
// without time going on.
func (o *observer) take() string {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	s := fmt.Sprint(o.seen)
	o.seen = nil
	return s
}

func (o *observer) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := o.take(); got != fmt.Sprint(want) {
		t.Errorf("observed %v, want %v", got, want)
	}
}

// expectAfterVacancy expects what follows a vacancy that may be too short to see.
func (o *observer) expectAfterVacancy(t *testing.T, want string) {
	t.Helper()
	if got := o.take(); got != fmt.Sprint([]string{want}) && got != fmt.Sprint([]string{"-", want}) {
		t.Errorf("observed %v, want %v, after a vacancy or not", got, want)
	}
}

func (o *observer) stop() {
	o.cancel()
	<-o.ended
}

func resign(e *locktest.Env, t *election.Term) {
	e.T.Helper()
	e.Release(t.Grant)
}
