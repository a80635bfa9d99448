package main

import (
	"context"
	"fmt"

	"github.com/lockkeeper/lockkeeper/integration/cost"
)

// costs counts what goes over the wire, from queueing to release, for each hand-over.
func costs(ctx context.Context, s *site, r *report, sc scale) error {
	const sessions, times = 8, 400
	rows := [][]string{{"queue", "waiting", "requests", "bytes received", "bytes sent", "wake-ups", "listings"}}
	type key struct{ flows, waiting int }
	bytes := make(map[key]float64)
	requests := make(map[key]float64)
	for _, flows := range []int{0, 1, 2, 8, 64} {
		for _, n := range []int{2, 16, 128, 1000} {
			if n < flows {
				continue
			}
			kind, name := "flows", fmt.Sprintf("%d flows", flows)
			if flows == 0 {
				kind, name = "fifo", "plain FIFO"
			}
			c, err := costOf(ctx, s, sessions, n, kind, flows, times)
			if err != nil {
				return err
			}
			bytes[key{flows, n}] = c.received
			requests[key{flows, n}] = c.requests
			rows = append(rows, []string{name, fmt.Sprint(n), fmt.Sprintf("%.2f", c.requests), fmt.Sprintf("%.0f", c.received),
				fmt.Sprintf("%.0f", c.sent), fmt.Sprintf("%.2f", c.wakeUps), fmt.Sprintf("%.2f", c.listings)})
		}
	}
	r.table(rows)
	_ = requests
	return nil
}

// A price is what one hand-over cost.
type price struct{ requests, received, sent, wakeUps, listings float64 }

func costOf(ctx context.Context, s *site, sessions, n int, kind string, flows, times int) (p price, err error) {
	m := new(cost.Meter)
	open, done, err := s.sessions(ctx, sessions, m.Dial)
	if err != nil {
		return p, err
	}
	defer done()
	l, err := newLine(s, open, n, kind, flows)
	if err != nil {
		return p, err
	}
	for range 2 { // each learns where it is
		if _, err := l.drain(ctx, 0, nil); err != nil {
			return p, err
		}
	}
	m.Take()
	handOvers := 0
	for handOvers < times {
		if _, err := l.drain(ctx, 0, nil); err != nil {
			return p, err
		}
		handOvers += n
	}
	c := m.Take()
	fmt.Println(flows, n, handOvers, c.ByOp)
	per := func(v int64) float64 { return float64(v) / float64(handOvers) }
	return price{per(c.Requests), per(c.BytesIn), per(c.BytesOut), per(c.WakeUps), per(int64(c.ByOp[cost.OpChildren] + c.ByOp[cost.OpChildren2]))}, nil
}
