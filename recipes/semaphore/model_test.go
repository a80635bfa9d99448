package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/locktest"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
	"github.com/lockkeeper/lockkeeper/session"
)

// A model is the semaphore in a few lines: who is in line, in order of arrival.
type model struct {
	size int
	line []*member
}

type member struct {
	id, n, session int
	slots          []int // once it holds
	gone           bool  // released, given up, dead or refused
}

// settle admits whom the rule admits.
func (m *model) settle() {
	m.line = slices.DeleteFunc(m.line, func(x *member) bool { return x.gone })
	var used []int
	for _, x := range m.line {
		switch {
		case x.slots != nil:
			used = append(used, x.slots...)
			continue
		case x.n > m.size:
			x.gone = true
			continue
		case len(used)+x.n > m.size:
			return
		}
		for slot := 0; len(x.slots) < x.n; slot++ {
			if !slices.Contains(used, slot) {
				x.slots = append(x.slots, slot)
				used = append(used, slot)
			}
		}
	}
}

// An act is one thing that happens; which is how the numbers are to be taken.
type act struct {
	what string
	a, b int
}

func drawScript(t *rapid.T) []act {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) act {
		return act{
			rapid.SampledFrom([]string{"arrive", "arrive", "arrive", "arrive", "release", "release", "release", "give up", "die", "remove", "resize"}).Draw(t, "what"),
			rapid.IntRange(0, 1000).Draw(t, "a"), rapid.IntRange(0, 1000).Draw(t, "b"),
		}
	}), 5, 25).Draw(t, "script")
}

// The real code on virtual time does what the model does, after each event and for
// every contender.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		for i := range 2 {
			size := rapid.IntRange(1, 5).Draw(rt, "size")
			script := drawScript(rt)
			var failure error
			run(t, func(e env) { failure = play(e, size, script) })
			if failure != nil {
				rt.Fatalf("run %d: %v", i, failure)
			}
		}
	})
}

// play runs the script, and returns where the code and the model part.
func play(e env, size int, script []act) error {
	m := &model{size: size}
	const clients = 4
	var sessions [clients]*session.Session
	var sems [clients]*semaphore.Semaphore
	for i := range clients {
		sessions[i] = e.Open()
		sems[i] = e.sem(sessions[i], size, recipes.FailOnLoss())
		e.resize(sems[i], size)
	}
	var attempts []*locktest.Attempt
	var members []*member
	pick := func(n int, ok func(*member) bool) *member {
		var fit []*member
		for _, x := range m.line {
			if ok(x) {
				fit = append(fit, x)
			}
		}
		if len(fit) == 0 {
			return nil
		}
		return fit[n%len(fit)]
	}
	holds := func(x *member) bool { return x.slots != nil }
	waits := func(x *member) bool { return x.slots == nil }
	defer func() {
		for _, a := range attempts {
			a.Cancel()
			a.Result()
		}
	}()

	for i, act := range script {
		switch act.what {
		case "arrive":
			x := &member{id: len(members), n: 1 + act.a%m.size, session: act.b % clients}
			e.resize(sems[x.session], m.size) // so that it knows
			m.line = append(m.line, x)
			members = append(members, x)
			attempts = append(attempts, e.take(sems[x.session], x.n))
		case "release":
			if x := pick(act.a, holds); x != nil {
				x.gone = true
				g, _ := attempts[x.id].Result()
				e.Release(g)
			}
		case "give up":
			if x := pick(act.a, waits); x != nil {
				x.gone = true
				attempts[x.id].Cancel()
			}
		case "remove":
			if x := pick(act.a, holds); x != nil {
				x.gone = true
				g, _ := attempts[x.id].Result()
				e.Delete(e.node(g))
			}
		case "die":
			s := act.a % clients
			for _, x := range m.line {
				if x.session == s {
					x.gone = true
				}
			}
			e.Expire(sessions[s].ID())
		case "resize":
			m.size = 1 + act.a%6
			e.resize(sems[act.b%clients], m.size)
		}
		time.Sleep(3 * time.Second) // a session that died comes back
		m.settle()
		for _, x := range members {
			if a := attempts[x.id]; !x.gone && x.n > m.size && x.slots == nil && !a.Pending() {
				x.gone = true // refused before its turn: it may look earlier
			}
			if err := compare(attempts[x.id], x); err != nil {
				return fmt.Errorf("after %d %+v of %v: %w; in the queue: %q", i, act, script, err, e.Children(locktest.Path))
			}
		}
	}
	return nil
}

// compare says what is different from the model.
func compare(a *locktest.Attempt, x *member) error {
	if a.Pending() {
		if x.gone || x.slots != nil {
			return fmt.Errorf("%+v waits", *x)
		}
		return nil
	}
	g, err := a.Result()
	switch {
	case !x.gone && x.slots == nil:
		return fmt.Errorf("%+v does not wait: %v", *x, err)
	case x.slots == nil:
		if err == nil {
			return fmt.Errorf("%+v was granted %v", *x, g.Slots())
		}
		if !errors.Is(err, recipes.ErrConflict) && !errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("%+v: %w", *x, err)
		}
	case err != nil:
		return fmt.Errorf("%+v: %w", *x, err)
	case !slices.Equal(g.Slots(), x.slots):
		return fmt.Errorf("%+v has slots %v", *x, g.Slots())
	case (g.Err() != nil) != x.gone:
		return fmt.Errorf("%+v: Err is %w", *x, g.Err())
	}
	return nil
}
