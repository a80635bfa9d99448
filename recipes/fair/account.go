package fair

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// How the time of holding is shared. It is start-time fair queueing (Goyal, Vin and
// Cheng, 1997) with what can be known without a scheduler: a flow's account says
// where its last holding started and ended on the flow's own scale, which is time
// divided by weight; and the lock's record says how far the scales of all that are
// in line have come, as the least of what they had used at the end of the last round.
// A flow whose last holding started beyond that lets others go first.
//
// That least is found by passing it along: each release takes the smaller of it and
// its own, and the release of the contender that was last in line when the round
// began closes the round. Flows that sit out don't take part, and are beyond it
// anyway.

// usage is a flow's account, in microseconds per unit of weight. It is text in the
// flow's node: "lockkeeper flow start=1200 used=1450".
type usage struct{ Start, Used int64 }

// parseUsage reads it. ours is false for data that somebody else put there.
func parseUsage(data []byte) (u usage, ours bool) {
	words := strings.Fields(string(data))
	if len(words) == 0 {
		return u, true
	}
	if len(words) < 2 || words[0] != "lockkeeper" || words[1] != "flow" {
		return u, false
	}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil || n < 0:
		case key == "start":
			u.Start = n
		case key == "used":
			u.Used = n
		}
	}
	return u, true
}

func (u usage) encode() []byte {
	return fmt.Appendf(nil, "lockkeeper flow start=%d used=%d", u.Start, u.Used)
}

// leastCharge is what a grant counts for at least: a lock is not free while it goes
// from hand to hand, and rounds of very short holdings must add up.
const leastCharge = time.Millisecond

// charge adds a holding. A flow that comes back starts where the others are.
func (u usage) charge(held time.Duration, weight int, c queue.Clock) usage {
	start := max(u.Used, c.Level)
	return usage{start, start + max(1, max(held, leastCharge).Microseconds()/int64(weight))}
}

// tick takes the release of the contender seq, whose flow has used that much, into
// the clock; last is the last contender in line.
func tick(c queue.Clock, seq, last, used int64) queue.Clock {
	if c.Low == 0 || used < c.Low {
		c.Low = used
	}
	if seq >= c.Round {
		c = queue.Clock{Level: max(c.Level, c.Low), Round: last}
	}
	return c
}

// An account is what one contender knows of its flow's usage.
type account struct {
	path   string // the flow's node
	weight int

	mu    sync.Mutex
	usage usage
	ours  bool
}

// account returns that of the lock's flow, which was not read yet; nil where the time
// of holding is not shared.
func (l *Lock) account() *account {
	if !l.p.holdTime {
		return nil
	}
	return &account{path: l.gate.root, weight: l.p.Weight}
}

// bid returns b with what a contender has to do for its flow's account.
func (g *gate) bid(a *account, b queue.Bid) queue.Bid {
	if a != nil {
		b.Beside, b.AtRelease = a.read, a.settle
	}
	return b
}

func (a *account) read(ctx context.Context, life *session.Life) error {
	data, _, err := life.Get(ctx, a.path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.usage, a.ours = parseUsage(data)
	a.ours = a.ours && err == nil
	return nil
}

// ahead reports whether the flow is ahead of the others.
func (a *account) ahead(c queue.Clock) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.usage.Start > c.Level
}

// settle is called at the release.
func (a *account) settle(held time.Duration, t queue.Turn) (queue.Clock, []any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.usage.charge(held, a.weight, t.Clock)
	c := tick(t.Clock, t.Seq, t.Last, u.Used)
	if !a.ours { // removed, or somebody else's data: nobody would read it
		return c, nil
	}
	a.usage = u
	return c, []any{&zk.SetDataRequest{Path: a.path, Data: u.encode(), Version: -1}}
}
