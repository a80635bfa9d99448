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
		{"lockkeeper flow used=12 turn=34", usage{Used: 12, Turn: 34}, true},
		{"lockkeeper flow turn=34 more used=12 x=y dir=5", usage{12, 34, 5}, true},
		{"lockkeeper flow used=-1 turn=99999999999999999999", usage{}, true},
		{"lockkeeper mutex used=12", usage{}, false},
		{"lockkeeper", usage{}, false},
		{"10.0.0.1", usage{}, false},
		{"\x00\xff", usage{}, false},
	} {
		if got, ours := parseUsage([]byte(c.data)); got != c.want || ours != c.ours {
			t.Errorf("%q: %+v, %v", c.data, got, ours)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		u := usage{rapid.Int64Min(0).Draw(t, "used"), rapid.Int64Min(0).Draw(t, "turn"), rapid.Int64Min(0).Draw(t, "dir")}
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
		{"first", usage{}, time.Second, 1, 0, usage{Used: 1e6, Turn: 1e6}},
		{"by weight", usage{}, time.Second, 4, 0, usage{Used: 25e4, Turn: 1e6}},
		{"goes on where it was", usage{Used: 1e6, Turn: 8000}, time.Second, 1, 5e5, usage{Used: 2e6, Turn: 1e6}},
		{"comes back where the others are", usage{Used: 1e6, Turn: 1e6}, time.Second, 1, 3e6, usage{Used: 4e6, Turn: 1e6}},
		{"a long one fades", usage{Used: 0, Turn: 8000}, time.Millisecond, 1, 0, usage{Used: 1000, Turn: 7000}},
		{"a millisecond at least", usage{}, time.Nanosecond, 1, 0, usage{Used: 1000, Turn: 1000}},
		{"and something for any weight", usage{}, time.Nanosecond, MaxWeight, 0, usage{Used: 1, Turn: 1000}},
		{"the clock went back", usage{Used: 10, Turn: 0}, -time.Hour, 1, 0, usage{Used: 1010, Turn: 1000}},
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
			if u.Used <= us[i].Used || u.Used <= c.Level {
				t.Fatalf("%+v after %+v at %+v", u, us[i], c)
			}
			us[i] = u
			most = max(most, u.Used)
			d := tick(c, seq, seq+rapid.Int64Range(0, 5).Draw(t, "behind"), u.Used, int64(i+1))
			if d.Level < c.Level || d.Level > most {
				t.Fatalf("%+v after %+v, at the release of %d", d, c, seq)
			}
			c = d
			seq += rapid.Int64Range(1, 2).Draw(t, "step")
		}
	})
}

func TestTick(t *testing.T) {
	const a, b = 5, 6
	c := queue.Clock{}
	for _, s := range []struct {
		seq, last, used, flow int64
		want                  queue.Clock
	}{
		{0, 3, 900, a, queue.Clock{Level: 0, Low: 900, Only: a, Round: 3}}, // the first of all begins a round
		{1, 4, 700, b, queue.Clock{Level: 0, Low: 700, Round: 3}},
		{2, 5, 950, a, queue.Clock{Level: 0, Low: 700, Round: 3}},
		{3, 6, 990, a, queue.Clock{Level: 700, Low: 990, Only: a, Round: 6}},    // the last of it, and of the next one
		{5, 8, 1500, b, queue.Clock{Level: 700, Low: 990, Only: 0, Round: 6}},   //
		{7, 9, 1200, b, queue.Clock{Level: 990, Low: 1200, Only: b, Round: 9}},  // the last one had left
		{8, 9, 1300, b, queue.Clock{Level: 990, Low: 1200, Only: b, Round: 9}},  //
		{9, 9, 1400, b, queue.Clock{Level: 1400, Low: 1400, Only: b, Round: 9}}, // nobody else had a part in it
		{10, 9, 100, a, queue.Clock{Level: 1400, Low: 100, Only: a, Round: 9}},  // the clock does not go back
	} {
		if c = tick(c, s.seq, s.last, s.used, s.flow); c != s.want {
			t.Errorf("release of %d: %+v, want %+v", s.seq, c, s.want)
		}
	}
}
