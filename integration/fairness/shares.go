package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/fair"
)

// mostAhead is what a flow of weight 1 may have to wait for beside another one: the
// holder, and the one that is in line.
const mostAhead = 2

// single has one flow with a single request now and then beside a thousand of another.
func single(ctx context.Context, s *site, r *report, sc scale) error {
	const crowd, requests = 1000, 40
	rows := [][]string{{"queue", "in line", "single requests", "grants waited for: median", "most", "from the call on: median", "most"}}
	var most int
	for _, flows := range []bool{false, true} {
		pause, n := func() int { return 3 + rand.IntN(20) }, requests
		busy := demand{Weight: 1, Requesters: crowd, Hold: sc.hold}
		now := demand{Weight: 1, Requesters: 1, Hold: sc.hold, Pause: pause}
		name := "FIFO"
		if flows {
			busy.Flow, now.Flow, name = "busy", "single", "flows"
		} else {
			if !sc.beside {
				continue
			}
			n = 2
		}
		l := &load{site: s, demands: []demand{busy, now}, stamps: true, enough: func(turns []turn) bool {
			return countOf(turns, 1) >= n
		}}
		turns, err := l.run(ctx)
		if err != nil {
			return err
		}
		waited, sinceCall := waits(turns, 1)
		rows = append(rows, []string{name, fmt.Sprint(crowd), fmt.Sprint(len(waited)),
			fmt.Sprint(median(waited)), fmt.Sprint(slices.Max(waited)), fmt.Sprint(median(sinceCall)), fmt.Sprint(slices.Max(sinceCall))})
		most = slices.Max(waited)
	}
	r.table(rows)
	fmt.Fprintf(r.out, "\nCounted from the zxid at which the request came to stand in the lock's queue: grants\nwhose holders wrote something after that. From the call on, grants are counted by this\nprocess; those during the first round trips are among them.\n")
	r.promise(most <= mostAhead, "a single request waits for at most %d grants: %d", mostAhead, most)
	return nil
}

// waits returns, for each turn of a demand, how many grants there were between its
// entry into the lock's queue, which is what its token says, and its own; and how many
// since it was asked for.
func waits(turns []turn, of int) (inLine, sinceCall []int) {
	for i, t := range turns {
		if t.Demand != of {
			continue
		}
		n := 0
		for _, before := range turns[:i] {
			if before.Zxid > int64(t.Token) {
				n++
			}
		}
		inLine, sinceCall = append(inLine, n), append(sinceCall, i-t.Called)
	}
	return inLine, sinceCall
}

// weights has four flows under constant load.
func weights(ctx context.Context, s *site, r *report, sc scale) error {
	var ds []demand
	sum := 0
	for w := 1; w <= 4; w++ {
		ds = append(ds, demand{Flow: fmt.Sprintf("weight-%d", w), Weight: w, Requesters: 16, Hold: sc.hold})
		sum += w
	}
	turns, err := constant(ctx, s, ds, sc.grants)
	if err != nil {
		return err
	}
	turns = turns[settling:]
	rows := [][]string{{"flow", "requesters", "grants", "share", "by weight", "off by"}}
	worst, kept := 0.0, true
	for i, d := range ds {
		n := countOf(turns, i)
		share, want := float64(n)/float64(len(turns)), float64(d.Weight)/float64(sum)
		off := share/want - 1
		worst = max(worst, math.Abs(off))
		cut := float64(d.Weight+1) / float64(len(turns)) / want // a round that was begun: matters where few are counted
		kept = kept && math.Abs(off) <= max(0.02, cut)
		rows = append(rows, []string{d.Flow, fmt.Sprint(d.Requesters), fmt.Sprint(n), percent(share), percent(want), fmt.Sprintf("%+.2f %%", 100*off)})
	}
	r.table(rows)
	r.promise(kept, "shares within 2 %% of the weights over %d grants: %.2f %%", len(turns), 100*worst)
	return nil
}

const leastJain = 0.99

// demands has eight equal flows of which some ask much more than others.
func demands(ctx context.Context, s *site, r *report, sc scale) error {
	ds := eight(sc.hold, func(i int) int { return []int{1, 2, 4, 8, 16, 24, 32, 64}[i] })
	turns, err := constant(ctx, s, ds, sc.grants)
	if err != nil {
		return err
	}
	turns = turns[settling:]
	shares := sums(turns, len(ds), grants)
	rows := [][]string{{"flow", "requesters", "grants", "share"}}
	for i, d := range ds {
		rows = append(rows, []string{d.Flow, fmt.Sprint(d.Requesters), fmt.Sprint(shares[i]), percent(shares[i] / float64(len(turns)))})
	}
	r.table(rows)
	r.promise(jain(shares) >= leastJain, "Jain's index of the grants of %d equal flows at least %v: %.4f", len(ds), leastJain, jain(shares))
	return nil
}

// holdTimes has eight equal flows of which one holds ten times longer, with and
// without ByHoldTime.
func holdTimes(ctx context.Context, s *site, r *report, sc scale) error {
	ds := eight(sc.hold, func(i int) int { return []int{4, 2, 4, 8, 16, 24, 32, 64}[i] })
	ds[0].Hold *= 10
	var found [2][]float64
	var given [2][]turn
	var lead float64
	var ahead error
	for i, opts := range [][]recipes.Option{nil, {fair.ByHoldTime()}} {
		turns, err := constant(ctx, s, ds, sc.grants, opts...)
		if err != nil {
			return err
		}
		given[i], found[i] = turns[settling:], sums(turns[settling:], len(ds), seconds)
		lead, ahead = leads(turns, len(ds))
	}
	rows := [][]string{{"", "", "", "by grants:", "", "", "ByHoldTime:", "", ""}, {"flow", "requesters", "holds", "grants", "held", "share", "grants", "held", "share"}}
	for i, d := range ds {
		row := []string{d.Flow, fmt.Sprint(d.Requesters), d.Hold.String()}
		for k, held := range found {
			total := 0.0
			for _, h := range held {
				total += h
			}
			row = append(row, fmt.Sprint(countOf(given[k], i)), fmt.Sprintf("%.2f s", held[i]), percent(held[i]/total))
		}
		rows = append(rows, row)
	}
	r.table(rows)
	fmt.Fprintf(r.out, "\nJain's index of the time of holding by grants: %.4f\n", jain(found[0]))
	r.promise(jain(found[1]) >= leastJain, "Jain's index of the time of holding, ByHoldTime, at least %v: %.4f", leastJain, jain(found[1]))
	r.promise(ahead == nil, "no flow ahead of another by more than four of its own longest holdings: by %.0f %% of that at most", 100*lead)
	return nil
}

// leads returns how far a flow of weight 1 got ahead of another one in the time of
// holding, in parts of what package fair says it can, and an error if it was more.
func leads(turns []turn, flows int) (most float64, err error) {
	held := sums(turns, flows, seconds)
	longest := make([]float64, flows)
	for _, t := range turns {
		longest[t.Demand] = max(longest[t.Demand], seconds(t))
	}
	for i := range held {
		for k := range held {
			lead, bound := held[i]-held[k], 4*longest[i]
			most = max(most, lead/bound)
			if lead > bound {
				err = errors.Join(err, fmt.Errorf("flow %d held for %.3f s, flow %d for %.3f s: more than %.3f s apart", i+1, held[i], k+1, held[k], bound))
			}
		}
	}
	return most, err
}

// eight returns equal flows.
func eight(hold time.Duration, requesters func(i int) int) []demand {
	var ds []demand
	for i := range 8 {
		ds = append(ds, demand{Flow: fmt.Sprintf("flow-%d", i+1), Weight: 1, Requesters: requesters(i), Hold: hold})
	}
	return ds
}

// settling is how many grants are left out at the beginning.
const settling = 50

// constant returns n turns under constant load, and before them those in which it
// settles.
func constant(ctx context.Context, s *site, ds []demand, n int, opts ...recipes.Option) ([]turn, error) {
	l := &load{site: s, demands: ds, options: opts, enough: func(turns []turn) bool { return len(turns) >= settling+n }}
	turns, err := l.run(ctx)
	if err != nil {
		return nil, err
	}
	return turns[:settling+n], nil
}

func grants(turn) float64    { return 1 }
func seconds(t turn) float64 { return t.Held.Seconds() }

// sums adds up something of all turns of each of n demands.
func sums(turns []turn, n int, of func(turn) float64) []float64 {
	out := make([]float64, n)
	for _, t := range turns {
		out[t.Demand] += of(t)
	}
	return out
}

func countOf(turns []turn, i int) int {
	n := 0
	for _, t := range turns {
		if t.Demand == i {
			n++
		}
	}
	return n
}

// jain is the fairness index of Jain, Chiu and Hawe (1984): 1 if all are equal, and
// one part in so many if one has everything.
func jain(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	return sum * sum / (float64(len(x)) * squares)
}

func median[T int | float64 | time.Duration](x []T) T {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// quartiles returns the first and the third.
func quartiles(x []float64) (low, high float64) {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/4], x[len(x)*3/4]
}
