package election_test

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/election"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/session"
)

func TestSomebodyIsAheadOfATry(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		el := fresh(e)
		before := e.Tree()
		first, err := el.TryCampaign(e.T.Context(), []byte("first"))
		if err != nil {
			t.Fatal(err)
		}
		held := e.Tree()
		if before == held {
			t.Error("nothing written")
		}
		for range 3 {
			if _, err := fresh(e).TryCampaign(e.T.Context(), nil); !errors.Is(err, recipes.ErrBusy) {
				t.Error(err)
			}
		}
		if e.Tree() != held {
			t.Errorf("a try that was busy wrote:\n%s\nbefore:\n%s", e.Tree(), held)
		}
		resign(e, first)
	})
}

func TestCampaignUnderATermsContext(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		el := fresh(e)
		term := elected(e, el, "x")
		ctx := term.Context(e.T.Context())
		e.ResetCounts()
		if _, err := el.Campaign(ctx, nil); !errors.Is(err, recipes.ErrDeadlock) {
			t.Error(err)
		}
		if _, err := el.TryCampaign(ctx, nil); !errors.Is(err, recipes.ErrDeadlock) {
			t.Error(err)
		}
		if n := e.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
		resign(e, term)
	})
}

func TestBadArguments(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		s := e.Open()
		e.ResetCounts()
		big := make([]byte, election.MaxValue+1)
		for i, opts := range [][]recipes.Option{
			{nil}, {recipes.Reentrant()}, {recipes.Extension("x")}, {election.Value(big)}, {recipes.Owner("")},
		} {
			if _, err := election.New(s, locktest.Path, opts...); !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("options %d: %v", i, err)
			}
		}
		if _, err := election.New(nil, locktest.Path); !errors.Is(err, recipes.ErrInvalid) {
			t.Error(err)
		}
		if _, err := election.New(s, "x"); !errors.Is(err, recipes.ErrInvalid) {
			t.Error(err)
		}
		el := on(e, s)
		if _, err := el.Campaign(e.T.Context(), big); !errors.Is(err, recipes.ErrInvalid) {
			t.Error(err)
		}
		if _, err := el.TryCampaign(e.T.Context(), big); !errors.Is(err, recipes.ErrInvalid) {
			t.Error(err)
		}
		if err := el.Run(e.T.Context(), nil); !errors.Is(err, recipes.ErrInvalid) {
			t.Error(err)
		}
		if n := e.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
		term := elected(e, el, "x")
		e.ResetCounts()
		err := term.Proclaim(e.T.Context(), big)
		var re *recipes.Error
		if !errors.Is(err, recipes.ErrInvalid) || !errors.As(err, &re) || re.Op != "proclaim" || re.Path != locktest.Path {
			t.Error(err)
		}
		for _, id := range []string{"", "x", "me", "candidate-1"} {
			if err := term.ResignTo(e.T.Context(), id); !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), strconv.Quote(id)) || term.Err() != nil {
				t.Errorf("ResignTo %q: %v, term %v", id, err, term.Err())
			}
		}
		if n := e.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
		resign(e, term)
	})
}

// The server takes the largest value with the longest owner and a long path.
func TestLargestValue(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		v := bytes.Repeat([]byte{0, 255, '"', '\n'}, election.MaxValue/4)
		s := e.Open(func(c *session.Config) { c.Chroot = "/" + strings.Repeat("c", 2000) })
		el, err := election.New(s, "/"+strings.Repeat("p", 2000), recipes.Owner(strings.Repeat("<", 256)))
		if err != nil {
			t.Fatal(err)
		}
		term, err := el.Campaign(e.T.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		if l := leader(e, el); !bytes.Equal(l.Value, v) {
			t.Errorf("%d bytes came back", len(l.Value))
		}
		v = bytes.Repeat([]byte{1, 254, 0, '\\'}, election.MaxValue/4)
		if err := term.Proclaim(e.T.Context(), v); err != nil {
			t.Error(err)
		}
		if l := leader(e, el); !bytes.Equal(l.Value, v) {
			t.Errorf("%d bytes came back", len(l.Value))
		}
		resign(e, term)
	})
}

// A path belongs to one recipe.
func TestPathIsAnothersOrOurs(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		g := e.Lock(e.New())
		el := fresh(e)
		if _, err := el.Campaign(e.T.Context(), nil); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
		if _, err := el.TryCampaign(e.T.Context(), nil); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
		if _, err := el.Leader(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
		o := observe(e, el)
		<-o.ended
		if !errors.Is(o.err, recipes.ErrConflict) {
			t.Error(o.take())
		}
		e.Release(g)
		e.DeleteAll(locktest.Path)
		term := elected(e, el, "x")
		if _, err := e.New().Lock(e.T.Context()); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
		resign(e, term)
		// made by another library, whose contenders stand in it
		e.DeleteAll(locktest.Path)
		e.Create(locktest.Path, nil)
		e.CreateEphemeral(locktest.Path+"/_c_1-latch-0000000000", []byte("host"), e.Open().ID())
		if _, err := fresh(e).Campaign(e.T.Context(), nil); !errors.Is(err, recipes.ErrConflict) {
			t.Error(err)
		}
	})
}

// A copy of another ensemble's data brings a record that names a leader.
func TestDirectoryWasCopiedWithItsRecord(t *testing.T) {
	locktest.Run(t, func(e *locktest.Env) {
		el := fresh(e)
		term := elected(e, el, "x")
		data, _ := e.Data(locktest.Path)
		next := start(e, fresh(e), "y")
		e.Queued(2)
		e.DeleteAll(locktest.Path)
		<-term.Done()
		next.Cancel()
		if g, err := next.Result(); err == nil {
			e.Release(g)
		}
		e.Empty()
		e.DeleteAll(locktest.Path)
		e.Create(locktest.Path, data)
		// Its number is that of one who stands in line, and does not lead: others do
		// not know that it is alone.
		stat, _ := e.Stat(locktest.Path)
		e.CreateEphemeral(fmt.Sprintf("%s/%x-candidate-0000000000", locktest.Path, stat.Czxid), nil, e.Open().ID())
		if l, err := el.Leader(e.T.Context()); !errors.Is(err, election.ErrNoLeader) {
			t.Errorf("%+v, %v", l, err)
		}
	})
}
