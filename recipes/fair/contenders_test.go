package fair

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
)

// listed makes contenders of words like "a1": the first of flow a. An upper-case
// flow's is the holder; "-1" has no flow.
func listed(words string) (out []queue.Listed) {
	for _, w := range strings.Fields(words) {
		flow := strings.ToLower(w[:1])
		c := queue.Listed{Contender: recipes.Contender{ID: strings.ToLower(w), Flow: flow, Holding: flow != w[:1]}, Request: strings.ToLower(w)}
		if flow == "-" {
			c.Flow = ""
		}
		out = append(out, c)
	}
	return out
}

func TestServe(t *testing.T) {
	for _, c := range []struct {
		name, line string
		flows      map[string]backlog
		want       string
	}{
		{"nobody", "", nil, ""},
		{"plain", "-1 -2 -3", nil, "-1 -2 -3"},
		{"one flow", "A1 a2", map[string]backlog{"a": {1, listed("a3 a4")}}, "a1 a2 a3 a4"},
		{"a tenant with many", "A1 a2 b1", map[string]backlog{"a": {1, listed("a3 a4 a5")}}, "a1 a2 b1 a3 a4 a5"},
		{"two in turn", "A1 a2 b1", map[string]backlog{"a": {1, listed("a3 a4")}, "b": {1, listed("b2 b3")}}, "a1 a2 b1 a3 b2 a4 b3"},
		{"by weight", "A1 a2 a3 b1", map[string]backlog{"a": {2, listed("a4 a5 a6")}, "b": {1, listed("b2 b3")}}, "a1 a2 a3 b1 a4 a5 b2 a6 b3"},
		{"about to come", "A1", map[string]backlog{"a": {1, listed("a2")}, "b": {2, listed("b1 b2 b3")}}, "a1 a2 b1 b2 b3"},
		{"nobody in line yet", "", map[string]backlog{"b": {1, listed("b1 b2")}, "a": {1, listed("a1")}}, "a1 b1 b2"},
		{"has passed meanwhile", "A1 a2 a3", map[string]backlog{"a": {2, listed("a2 a3 a4")}}, "a1 a2 a3 a4"},
		{"more in line than now are allowed", "A1 a2 a3 a4 b1", map[string]backlog{"a": {1, listed("a5")}, "b": {1, listed("b2")}}, "a1 a2 a3 a4 b1 a5 b2"},
		{"no weight known", "A1", map[string]backlog{"a": {0, listed("a2 a3")}}, "a1 a2 a3"},
		{"with some of no flow", "-1 a1 -2", map[string]backlog{"a": {1, listed("a2")}}, "-1 a1 -2 a2"},
	} {
		var got []string
		for _, x := range serve(listed(c.line), c.flows) {
			got = append(got, x.ID)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Everybody is served once, those in line and those of a flow keep their order, and
// from no flow come more than its weight before another that waits.
func TestServeIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var line []queue.Listed
		flows := map[string]backlog{}
		weight := map[string]int{}
		all := 0
		next := map[string]int{}
		draw := func(flow string) queue.Listed {
			next[flow]++
			all++
			return listed(fmt.Sprint(flow, next[flow]))[0]
		}
		names := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "flows")]
		for _, flow := range names {
			weight[flow] = rapid.IntRange(1, 4).Draw(t, "weight")
			for range rapid.IntRange(0, weight[flow]).Draw(t, "in line") {
				line = append(line, draw(flow))
			}
		}
		for _, flow := range names {
			b := backlog{weight: weight[flow]}
			for range rapid.IntRange(0, 8).Draw(t, "waiting") {
				b.waiting = append(b.waiting, draw(flow))
			}
			if b.waiting != nil {
				flows[flow] = b
			}
		}
		before := len(line)
		out := serve(slices.Clone(line), flows)
		if len(out) != all {
			t.Fatalf("%d of %d", len(out), all)
		}
		seen := map[string]int{}
		since := map[string]map[string]int{} // grants of others since a flow's last
		for i, c := range out {
			if i < before && c.ID != line[i].ID {
				t.Fatalf("%d is %s", i, c.ID)
			}
			seen[c.Flow]++
			if want := fmt.Sprint(c.Flow, seen[c.Flow]); c.ID != want {
				t.Fatalf("%s, want %s", c.ID, want)
			}
			for _, other := range names {
				if other == c.Flow || since[other] == nil || seen[other] == next[other] {
					continue
				}
				if since[other][c.Flow]++; since[other][c.Flow] > 2*weight[c.Flow] { // those in line at the time, and as many again
					t.Fatalf("%d of %s before the next of %s: %v", since[other][c.Flow], c.Flow, other, out)
				}
			}
			since[c.Flow] = map[string]int{}
		}
	})
}
