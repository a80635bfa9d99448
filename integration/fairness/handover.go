package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// handOvers compares the time from one release to the next grant, in lines of 32. The
// kinds take turns, in random order, and each round is compared with itself.
func handOvers(ctx context.Context, s *site, r *report, sc scale) error {
	const n, sessions, rounds = 32, 8, 21
	kinds := []struct {
		name, kind string
		flows      int
	}{{"plain FIFO", "fifo", 0}, {"mutex", "mutex", 0}, {"one flow", "flows", 1}}
	open, done, err := s.sessions(ctx, sessions, nil)
	if err != nil {
		return err
	}
	defer done()
	rows := [][]string{{"held for", "queue", "hand-over", "beside plain FIFO", "lowest", "highest"}}
	for _, hold := range []time.Duration{0, sc.hold, 5 * time.Millisecond} {
		lines := make([]*line, len(kinds))
		for i, k := range kinds {
			if lines[i], err = newLine(s, open, n, k.kind, k.flows); err != nil {
				return err
			}
			if err := lines[i].warm(ctx); err != nil {
				return err
			}
		}
		took := make([][]time.Duration, len(kinds)) // medians of the rounds
		for range rounds {
			for _, i := range rand.Perm(len(kinds)) {
				stays, err := lines[i].drain(ctx, hold, nil)
				if err != nil {
					return err
				}
				took[i] = append(took[i], median(between(stays)))
			}
		}
		for i, k := range kinds {
			var ratios []float64
			for round := range took[i] {
				ratios = append(ratios, float64(took[i][round])/float64(took[0][round]))
			}
			low, high := quartiles(ratios)
			rows = append(rows, []string{hold.String(), k.name, median(took[i]).Round(time.Microsecond).String(),
				fmt.Sprintf("%.2f", median(ratios)), fmt.Sprintf("%.2f", low), fmt.Sprintf("%.2f", high)})
		}
	}
	rows[0][4], rows[0][5] = "quartiles:", ""
	r.table(rows)
	fmt.Fprintf(r.out, "\nTime from the call of Release to the return of the next Lock, %d waiting over %d\nsessions; medians of %d rounds.\n", n, sessions, rounds)
	return nil
}
