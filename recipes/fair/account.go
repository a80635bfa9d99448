package fair

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// How the time of holding is shared. It is fair queueing by virtual time (Goyal, Vin
// and Cheng's start-time fair queueing, 1997) with what can be known without a
// scheduler: a flow's account says how much it has used, which is time divided by
// weight; and the lock's record says how far all that are in line have come, as the
// least of what they had used at the end of the last round. A flow that is beyond
// that by two turns lets others go first, a turn being as many holdings as its weight.
// It takes two, since that least is a round old, and so is what the flow itself has
// done since.
//
// The least is found by passing it along: each release takes the smaller of it and
// its own, and the release of the contender that was last in line when the round
// began closes the round. The one that closes a round belongs to the next one, too:
// so a round has all who stood in line at one moment, the holder included. Flows that
// sit out don't take part, and are beyond it anyway.

// usage is a flow's account, in microseconds. It is text in the flow's node:
// "lockkeeper flow used=1450 turn=250 dir=3201". It counts only beside the record of
// the directory with that czxid: in one made anew, all begin anew.
type usage struct {
	Used int64 // per unit of weight
	Turn int64 // a long holding, which is a turn per unit of weight; it fades
	Dir  int64
}

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
		case key == "used":
			u.Used = n
		case key == "turn":
			u.Turn = n
		case key == "dir":
			u.Dir = n
		}
	}
	return u, true
}

func (u usage) encode() []byte {
	return fmt.Appendf(nil, "lockkeeper flow used=%d turn=%d dir=%d", u.Used, u.Turn, u.Dir)
}

// in returns what u says beside the record of a directory.
func (u usage) in(dir int64) usage {
	if u.Dir == dir {
		return u
	}
	return usage{Dir: dir}
}

// leastCharge is what a grant counts for at least: a lock is not free while it goes
// from hand to hand, and rounds of very short holdings must add up.
const leastCharge = time.Millisecond

// charge adds a holding. A flow that comes back starts where the others are.
func (u usage) charge(held time.Duration, weight int, c queue.Clock) usage {
	cost := max(held, leastCharge).Microseconds()
	return usage{
		Used: max(u.Used, c.Level) + max(1, cost/int64(weight)),
		Turn: max(cost, u.Turn-u.Turn/8),
		Dir:  u.Dir,
	}
}

// ahead reports whether the flow is to sit out.
func (u usage) ahead(c queue.Clock) bool { return u.Used-2*u.Turn > c.Level }

// tick takes the release of the contender seq, whose flow has used that much, into
// the clock; last is the last contender in line.
func tick(c queue.Clock, seq, last, used, flow int64) queue.Clock {
	if c.Low == 0 { // the first one of all
		return queue.Clock{Level: c.Level, Low: used, Only: flow, Round: last}
	}
	if c.Only != flow {
		c.Low, c.Only = min(c.Low, used), 0
	}
	if seq < c.Round {
		return c
	}
	if c.Only != 0 {
		c.Low = used // it has the lock for itself: the least is what it has used by now
	}
	return queue.Clock{Level: max(c.Level, c.Low), Low: used, Round: last, Only: flow}
}

// flowNumber stands for a flow in the clock.
func flowNumber(name string) int64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return int64(h.Sum64()>>1 | 1)
}

// An account is what one contender knows of its flow's usage.
type account struct {
	path   string // the flow's node
	flow   int64
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
	return &account{path: l.gate.root, flow: flowNumber(l.p.Name), weight: l.p.Weight}
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
func (a *account) ahead(o queue.Outlook) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.usage.in(o.Dir).ahead(o.Clock)
}

// settle is called at the release.
func (a *account) settle(held time.Duration, t queue.Turn) (queue.Clock, []any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.usage.in(t.Dir).charge(held, a.weight, t.Clock)
	c := tick(t.Clock, t.Seq, t.Last, u.Used, a.flow)
	if !a.ours { // removed, or somebody else's data: nobody would read it
		return c, nil
	}
	a.usage = u
	return c, []any{&zk.SetDataRequest{Path: a.path, Data: u.encode(), Version: -1}}
}
