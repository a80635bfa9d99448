package main

import (
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/ensemble"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
)

// The tables of shares, smaller, on a real server. What depends on the machine's speed
// is for the command to judge.
func TestShares(t *testing.T) {
	sc := scale{grants: 400, hold: 2 * time.Millisecond}
	if testing.Short() {
		sc.grants = 200
	}
	e := ensemble.Single(t, ensemble.Options{})
	s, err := openSite(t.Context(), e.Servers(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	for _, table := range all[:3] {
		t.Run(table.name, func(t *testing.T) {
			r := &report{out: t.Output()}
			if err := table.fill(t.Context(), s, r, sc); err != nil {
				t.Fatal(err)
			}
			for _, m := range r.missed {
				t.Error(m)
			}
			if r.kept+len(r.missed) == 0 {
				t.Error("nothing was judged")
			}
		})
	}
	t.Run("d", func(t *testing.T) {
		ds := eight(sc.hold, func(i int) int { return 2 + 2*i })
		ds[0].Hold *= 10
		apart := make(map[bool]float64)
		for _, byTime := range []bool{false, true} {
			var opts []recipes.Option
			if byTime {
				opts = append(opts, fair.ByHoldTime())
			}
			turns, err := constant(t.Context(), s, ds, sc.grants, opts...)
			if err != nil {
				t.Fatal(err)
			}
			lead, err := leads(turns, len(ds))
			if byTime && err != nil {
				t.Error(err)
			}
			apart[byTime] = lead
		}
		if apart[false] <= 1 {
			t.Errorf("also without ByHoldTime no flow got ahead by more than %.0f %%: this proves nothing", 100*apart[false])
		}
		t.Logf("furthest ahead, of what is promised ByHoldTime: %.0f %%; without it: %.0f %%", 100*apart[true], 100*apart[false])
	})
}

func TestJain(t *testing.T) {
	for _, test := range []struct {
		x    []float64
		want float64
	}{{[]float64{3, 3, 3, 3}, 1}, {[]float64{8, 0, 0, 0}, 0.25}, {[]float64{1, 3}, 0.8}} {
		if got := jain(test.x); got != test.want {
			t.Errorf("jain(%v) = %v, want %v", test.x, got, test.want)
		}
	}
}

// A table that breaks a promise is an exit code.
func TestMissedPromise(t *testing.T) {
	r := &report{out: t.Output()}
	r.promise(true, "one")
	if r.verdict() != 0 {
		t.Error("a promise was kept: want exit code 0")
	}
	r.promise(false, "two")
	if r.verdict() != 1 {
		t.Error("a promise was missed: want exit code 1")
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-grants", "1"}, {"-hold", "-1s"}, {"-only", "x"}, {"extra"}, {"-inprocess", "-servers", "a:1"}, {"-nosuch"}} {
		if code := run(t.Context(), args); code != 2 {
			t.Errorf("%q: exit code %d, want 2", args, code)
		}
	}
}
