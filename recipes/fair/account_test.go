package fair

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
)

func TestParseUsage(t *testing.T) {
	for _, c := range []struct {
		data string
		want usage
		ours bool
	}{
		{"", usage{}, true},
		{"lockkeeper flow", usage{}, true},
		{"lockkeeper flow start=12 used=34", usage{12, 34}, true},
		{"lockkeeper flow used=34 more start=12 x=y", usage{12, 34}, true},
		{"lockkeeper flow start=-1 used=99999999999999999999", usage{}, true},
		{"lockkeeper mutex start=12", usage{}, false},
		{"lockkeeper", usage{}, false},
		{"10.0.0.1", usage{}, false},
		{"\x00\xff", usage{}, false},
	} {
		if got, ours := parseUsage([]byte(c.data)); got != c.want || ours != c.ours {
			t.Errorf("%q: %+v, %v", c.data, got, ours)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		u := usage{rapid.Int64Min(0).Draw(t, "start"), rapid.Int64Min(0).Draw(t, "used")}
		if got, ours := parseUsage(u.encode()); got != u || !ours {
			t.Errorf("%+v, %v", got, ours)
		}
	})
}

func TestCharge(t *testing.T) {
	for _, c := range []struct {
		name   string
		u      usage
		held   time.Duration
		weight int
		level  int64
		want   usage
	}{
		{"first", usage{}, time.Second, 1, 0, usage{0, 1e6}},
		{"by weight", usage{}, time.Second, 4, 0, usage{0, 25e4}},
		{"goes on where it was", usage{0, 1e6}, time.Second, 1, 5e5, usage{1e6, 2e6}},
		{"comes back where the others are", usage{0, 1e6}, time.Second, 1, 3e6, usage{3e6, 4e6}},
		{"a millisecond at least", usage{}, time.Nanosecond, 1, 0, usage{0, 1000}},
		{"and something for any weight", usage{}, time.Nanosecond, maxWeight, 0, usage{0, 1}},
		{"the clock went back", usage{5, 10}, -time.Hour, 1, 0, usage{10, 1010}},
	} {
		if got := c.u.charge(c.held, c.weight, queue.Clock{Level: c.level}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Whatever happens, an account only grows, and so does the clock; the clock is never
// ahead of all that were used in its round.
func TestUsageAndClockOnlyGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		us := make([]usage, rapid.IntRange(1, 5).Draw(t, "flows"))
		var c queue.Clock
		seq, most := int64(0), int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "releases") {
			i := rapid.IntRange(0, len(us)-1).Draw(t, "flow")
			held := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "held"))
			u := us[i].charge(held, rapid.IntRange(1, 10).Draw(t, "weight"), c)
			if u.Start < us[i].Used || u.Start < c.Level || u.Used <= u.Start {
				t.Fatalf("%+v after %+v at %+v", u, us[i], c)
			}
			us[i] = u
			most = max(most, u.Used)
			d := tick(c, seq, seq+rapid.Int64Range(0, 5).Draw(t, "behind"), u.Used)
			if d.Level < c.Level || d.Level > most || d.Round < c.Round {
				t.Fatalf("%+v after %+v, at the release of %d", d, c, seq)
			}
			c = d
			seq += rapid.Int64Range(1, 2).Draw(t, "step")
		}
	})
}

func TestTick(t *testing.T) {
	type in struct{ seq, last, used int64 }
	c := queue.Clock{}
	for _, s := range []struct {
		in
		want queue.Clock
	}{
		{in{0, 3, 900}, queue.Clock{Level: 900, Low: 0, Round: 3}},   // alone until now: a round of its own
		{in{1, 4, 700}, queue.Clock{Level: 900, Low: 700, Round: 3}}, // one of the round
		{in{2, 5, 950}, queue.Clock{Level: 900, Low: 700, Round: 3}},
		{in{3, 6, 990}, queue.Clock{Level: 900, Low: 0, Round: 6}}, // the last of it; the clock does not go back
		{in{5, 8, 1500}, queue.Clock{Level: 900, Low: 1500, Round: 6}},
		{in{7, 9, 1200}, queue.Clock{Level: 1200, Low: 0, Round: 9}}, // the last of it had left
	} {
		if c = tick(c, s.seq, s.last, s.used); c != s.want {
			t.Errorf("%+v: %+v, want %+v", s.in, c, s.want)
		}
	}
}
