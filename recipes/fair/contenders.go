package fair

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// Contenders lists the holder and the waiters, those of all flows, in the order in
// which they will be served if nobody comes or goes: the place of a contender is its
// index. Where flows share the time of holding, those that sit out come later than
// that. It is true of one moment only, and takes one read for each contender and two
// listings for each flow.
func (l *Lock) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	life, err := l.sess.Life(ctx)
	if err != nil {
		return nil, l.fail("contenders", err)
	}
	// First those before the gates: who passes meanwhile is seen twice rather than not.
	flows, err := l.waiting(ctx, life)
	if err != nil {
		return nil, l.fail("contenders", err)
	}
	line, _, err := l.main.List(ctx)
	if err != nil {
		return nil, l.fail("contenders", err)
	}
	return serve(line, flows), nil
}

// A backlog is the contenders of one flow before its gate.
type backlog struct {
	weight  int
	waiting []queue.Listed
}

// waiting reads the backlogs of all flows, by name.
func (l *Lock) waiting(ctx context.Context, life *session.Life) (map[string]backlog, error) {
	names, _, err := life.Children(ctx, flowsPath(l.Path()))
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	flows := make(map[string]backlog)
	for _, node := range names {
		name, ok := flowName(node)
		if !ok {
			continue
		}
		q, err := queue.NewGate(l.sess, flowsPath(l.Path())+"/"+node+"/queue", 0, l.set)
		if err != nil {
			return nil, err
		}
		waiting, weight, err := q.List(ctx)
		if err != nil {
			return nil, err
		}
		for i := range waiting {
			waiting[i].Flow, waiting[i].Holding = name, false
		}
		if len(waiting) > 0 {
			flows[name] = backlog{weight, waiting}
		}
	}
	return flows, nil
}

// serve puts all contenders in the order of service: whenever one gets the lock, it
// waits in the queue no more, and the next of its flow comes in at the tail.
func serve(line []queue.Listed, flows map[string]backlog) []recipes.Contender {
	inLine := make(map[string]int)
	known := make(map[string]bool) // by their requests
	for _, c := range line {
		known[c.Request] = true
		if !c.Holding {
			inLine[c.Flow]++
		}
	}
	next := func(flow string) {
		b := flows[flow]
		for len(b.waiting) > 0 && inLine[flow] < max(1, b.weight) {
			c := b.waiting[0]
			b.waiting = b.waiting[1:]
			if known[c.Request] {
				continue // has passed meanwhile
			}
			line = append(line, c)
			inLine[flow]++
		}
		flows[flow] = b
	}
	var names []string
	for name := range flows {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	for _, name := range names { // they are about to come
		next(name)
	}
	var out []recipes.Contender
	for i := 0; i < len(line); i++ {
		c := line[i]
		if !c.Holding {
			inLine[c.Flow]--
		}
		if _, ok := flows[c.Flow]; ok {
			next(c.Flow)
		}
		out = append(out, c.Contender)
	}
	return out
}
