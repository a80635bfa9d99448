package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/cost"
)

// flatWithin is how far costs of lines may be apart that differ in their length or in
// the number of their flows. Who waits for more than five seconds also reads its own
// node, once.
const flatWithin = 0.15

// enough waiters in a flow are those of which nearly all have to wait before its gate;
// and in one flow alone, the next comes when the lock has just been released, which
// saves it a watch.
const enough = 8

// costs counts what goes over the wire for each hand-over, from queueing to release.
func costs(ctx context.Context, s *site, r *report, sc scale) error {
	rows := [][]string{{"queue", "waiting", "requests", "bytes received", "bytes sent", "wake-ups", "listings"}}
	var requests, received spread
	for _, flows := range []int{0, 1, 2, 8, 64} {
		for _, n := range []int{2, 16, 128, 1000} {
			if n < flows {
				continue
			}
			kind, name := "flows", fmt.Sprintf("%d flows", flows)
			switch flows {
			case 0:
				kind, name = "fifo", "plain FIFO"
			case 1:
				name = "1 flow"
			}
			p, err := priceOf(ctx, s, n, kind, flows, sc.hold)
			if err != nil {
				return err
			}
			if flows > 1 && n >= enough*flows {
				requests.add(p.requests)
				received.add(p.received)
			}
			rows = append(rows, []string{name, fmt.Sprint(n), fmt.Sprintf("%.2f", p.requests), fmt.Sprintf("%.0f", p.received),
				fmt.Sprintf("%.0f", p.sent), fmt.Sprintf("%.2f", p.wakeUps), fmt.Sprintf("%.2f", p.listings)})
		}
	}
	r.table(rows)
	r.promise(requests.width() <= flatWithin && received.width() <= flatWithin,
		"requests and bytes of a hand-over the same, within %.0f %%, for 16 to 1000 waiting in 2 to 64 flows of %d or more: %.1f to %.1f requests, %.0f to %.0f bytes received",
		100*flatWithin, enough, requests.least, requests.most, received.least, received.most)
	return nil
}

// A spread is the least and the most of some numbers.
type spread struct{ least, most float64 }

func (s *spread) add(v float64) {
	if s.least == 0 {
		s.least = math.Inf(1)
	}
	s.least, s.most = min(s.least, v), max(s.most, v)
}

// width is by how much the most is more than the least.
func (s *spread) width() float64 { return s.most/s.least - 1 }

// A price is what one hand-over costs.
type price struct{ requests, received, sent, wakeUps, listings float64 }

func (p *price) add(c cost.Count, hands int) {
	per := func(v int64) float64 { return float64(v) / float64(hands) }
	p.requests += per(c.Requests)
	p.received += per(c.BytesIn)
	p.sent += per(c.BytesOut)
	p.wakeUps += per(c.WakeUps)
	p.listings += per(int64(c.ByOp[cost.OpChildren] + c.ByOp[cost.OpChildren2]))
}

// priceOf adds up what queueing costs, and what a hand-over does in a line of n. Of a
// long line that is counted for the first hand-overs only, before waits become long.
func priceOf(ctx context.Context, s *site, n int, kind string, flows int, hold time.Duration) (price, error) {
	const sessions, times, longest = 8, 200, 300
	m := new(cost.Meter)
	open, done, err := s.sessions(ctx, sessions, m.Dial)
	if err != nil {
		return price{}, err
	}
	defer done()
	l, err := newLine(s, open, n, kind, flows)
	if err != nil {
		return price{}, err
	}
	if err := l.warm(ctx); err != nil {
		return price{}, err
	}
	counted := min(n, longest)
	rounds := (times + counted - 1) / counted
	var p price
	for range rounds {
		m.Take()
		_, err := l.drain(ctx, hold, func(grants int) {
			switch grants {
			case 0:
				p.add(m.Take(), n*rounds)
			case counted:
				p.add(m.Take(), counted*rounds)
			}
		})
		if err != nil {
			return price{}, err
		}
	}
	return p, nil
}
