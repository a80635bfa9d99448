package fallback

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Contenders lists the holder and the waiters in queue order, with one request. Of the
// goroutines of another client that queue in its process, only the one that stands in
// line on the server is there; of this client's, all are. It is true of one moment only:
// good for people, metrics and tools, not for deciding whether to write.
func (m *Mutex) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	list, err := m.l.contenders(ctx)
	if err != nil {
		return nil, m.l.fail("contenders", err)
	}
	return list, nil
}

// conflict names the key that is used for something else, with its prefix.
func (l *lock) conflict() error {
	return fmt.Errorf("%w: the key %q holds something else", recipes.ErrConflict, l.keys[0])
}

func (l *lock) contenders(ctx context.Context) ([]recipes.Contender, error) {
	if err := l.c.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	reply, err := l.repeat(ctx, query{l.kind.list, l.keys, nil})
	if err != nil {
		return nil, err
	}
	n := int(number(reply, 0))
	if n < 0 || len(reply) < 1+5*n {
		return nil, l.conflict()
	}
	var list []recipes.Contender
	own := l.c.renewer.of(l)
	for held := range slices.Chunk(reply[1:1+5*n], 5) {
		c, delay := l.contender(text(held[3]), text(held[1]))
		if left := time.Duration(number(held, 2)) * time.Millisecond; c.ID == "-" || left >= 0 && left <= delay {
			continue // it is closed for the delay of one that is gone
		}
		token, _ := strconv.ParseUint(text(held[0]), 10, 64)
		c.Holding, c.Token, c.Slots = true, recipes.Token(token), slots(text(held[4]))
		for _, h := range own {
			if h.id == c.ID {
				c.Token, c.Owner = h.holder()
			}
		}
		list = append(list, c)
	}
	for waits := range slices.Chunk(reply[1+5*n:], 2) {
		if len(waits) == 2 {
			c, _ := l.contender(text(waits[0]), text(waits[1]))
			list = append(list, c)
		}
	}
	return append(list, l.c.visitors(l)...), nil
}

func text(v any) string { s, _ := v.(string); return s }

// slots reads numbers with commas between.
func slots(list string) (numbers []int) {
	for f := range strings.SplitSeq(list, ",") {
		if n, err := strconv.Atoi(f); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// repeat asks what may be asked any number of times, until there is an answer.
func (l *lock) repeat(ctx context.Context, q query) ([]any, error) {
	var last error
	pause := newPause(2*time.Millisecond, 250*time.Millisecond)
	for {
		reply, _, err := l.c.ask(ctx, ask{query: q})
		if ended := l.c.ended(ctx); ended != nil {
			return nil, withTrouble(ended, last)
		}
		switch fateOf(err) {
		case answered:
			return reply, nil
		case refused:
			return nil, translate(err)
		}
		last = err
		l.c.pauseFor(ctx, pause.NextBackOff())
	}
}

// contender reads what the server knows of one, and its time of arrival.
func (l *lock) contender(member, micros string) (recipes.Contender, time.Duration) {
	f := strings.SplitN(member, " ", 7)
	if len(f) < 7 {
		return recipes.Contender{ID: member, Kind: "unknown"}, 0
	}
	us, _ := strconv.ParseFloat(micros, 64)
	delay, _ := strconv.ParseInt(f[3], 10, 64)
	size, _ := strconv.Atoi(f[5])
	if !l.kind.sized {
		size = 0
	}
	return recipes.Contender{
		Permits: size,
		Owner:   f[6],
		Since:   time.UnixMicro(int64(us)),
		Kind:    f[4],
		Mine:    strings.HasPrefix(f[0], l.c.id+"-"),
		ID:      f[0],
	}, time.Duration(delay) * time.Millisecond
}

// holder returns who has the hold now, of those who pass it on.
func (h *hold) holder() (recipes.Token, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token, h.owner
}

// visitors lists those who wait in the process. Their times are of our own clock.
func (c *Client) visitors(l *lock) []recipes.Contender {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.gates[l.keys[0]]
	if g == nil {
		return nil
	}
	var list []recipes.Contender
	for i, v := range g.line {
		list = append(list, recipes.Contender{
			Owner: v.l.set.Owner, Since: v.since, Kind: "lock", Mine: true, ID: c.id + "/" + strconv.Itoa(i),
		})
	}
	slices.SortStableFunc(list, func(a, b recipes.Contender) int { return cmp.Compare(a.Since.UnixNano(), b.Since.UnixNano()) })
	return list
}
