package fair_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
	"github.com/lockkeeper/lockkeeper/recipes/semaphore"
)

// What can't be right is refused before anything is sent, and the error says what was
// wrong.
func TestBadArguments(t *testing.T) {
	run(t, func(e env) {
		s := e.Open()
		e.ResetCounts()
		type in = []recipes.Option
		long := strings.Repeat("é", 65)
		for _, c := range []struct {
			path string
			opts in
			says string
		}{
			{"", nil, "path"},
			{"x", nil, "path"},
			{"/", in{fair.Flow("a", 1)}, "path"},
			{"/x/../y", nil, "path"},
			{"/x", in{fair.Flow("", 1)}, `Flow("", …): want a name of 1 to 128 bytes`},
			{"/x", in{fair.Flow(long, 1)}, `want a name of 1 to 128 bytes`},
			{"/x", in{fair.Flow("a\x00", 1)}, `Flow("a\x00", …)`},
			{"/x", in{fair.Flow("a\nb", 1)}, `Flow("a\nb", …)`},
			{"/x", in{fair.Flow("\x7f", 1)}, "control characters"},
			{"/x", in{fair.Flow("\u0085", 1)}, "control characters"},
			{"/x", in{fair.Flow("\u2028", 1)}, "control characters"},
			{"/x", in{fair.Flow("a\xff", 1)}, "UTF-8"},
			{"/x", in{fair.Flow("a", 0)}, `Flow("a", 0): want a weight of 1 to 1000000`},
			{"/x", in{fair.Flow("a", -1)}, `Flow("a", -1)`},
			{"/x", in{fair.Flow("a", 1_000_001)}, `Flow("a", 1000001)`},
			{"/x", in{fair.Flow("a", 1), fair.Flow("b", 2)}, `Flow is given twice, as "a" and "b"`},
			{"/x", in{fair.Flow("a", 1), fair.Flow("a", 1)}, "Flow is given twice"},
			{"/x", in{fair.ByHoldTime()}, "ByHoldTime without Flow"},
			{"/x", in{recipes.Extension(3)}, "not for a fair lock"},
			{"/x", in{nil}, ""},
			{"/x", in{recipes.Owner("")}, ""},
			{"/x", in{fair.Flow("a", 1), recipes.MaxHold(0)}, "MaxHold"},
		} {
			l, err := fair.New(s, c.path, c.opts...)
			if l != nil || !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("path %q, error %q: want one that says %q", c.path, err, c.says)
			}
		}
		if l, err := fair.New(nil, "/x"); l != nil || !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("no session: %v, %v", l, err)
		}
		if _, err := semaphore.New(s, "/x", 1, fair.Flow("a", 1)); !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("a semaphore took the option Flow: %v", err)
		}
		if n := e.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// Names that are odd, but names; no two of them are one flow.
func TestNamesOfFlows(t *testing.T) {
	run(t, func(e env) {
		names := []string{"/", "a/b", "a%2Fb", "%", ".", "..", "%2E", " ", "a ", "Ä", "\U0001F600", "\uF8FF", "queue", "line", "zookeeper", "lock-0000000001", strings.Repeat("é", 64)}
		s := e.Open()
		g := e.Lock(e.at(s))
		for _, name := range names {
			e.Start(e.at(s, fair.Flow(name, 1)).Lock)
			e.waitGate("never there", 0)
		}
		e.waitLine(1 + len(names))
		if n := len(e.Children(flows)); n != len(names) {
			t.Errorf("%d names, and %d flows: %q", len(names), n, e.Children(flows))
		}
		cs, err := e.at(s).Contenders(e.T.Context())
		if err != nil || len(cs) != len(names)+1 {
			t.Fatalf("%v, %v", cs, err)
		}
		for i, c := range cs[1:] {
			if c.Flow != names[i] {
				t.Errorf("flow %q, want %q", c.Flow, names[i])
			}
		}
		s.Close()
		_ = g
	})
}
