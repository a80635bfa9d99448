package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// Contenders lists holder and waiters in queue order, with one read for each.
func (q *Queue) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	listed, _, err := q.List(ctx)
	if err != nil {
		return nil, q.fail("contenders", err)
	}
	var out []recipes.Contender
	for _, c := range listed {
		out = append(out, c.Contender)
	}
	return out, nil
}

// A Listed is a contender together with what only recipes know of it.
type Listed struct {
	recipes.Contender
	Request string // unique: two places of one contender have the same
}

// List is Contenders for recipes: it returns the queue's weight besides.
func (q *Queue) List(ctx context.Context) ([]Listed, int, error) {
	life, err := q.sess.Life(ctx)
	if err != nil {
		return nil, 0, err
	}
	nodes, stat, err := q.nodes(ctx, life)
	if err != nil {
		return nil, 0, err
	}
	weight := 0
	if q.weight > 0 || q.recipe.Name == gateName {
		data, _, err := life.Get(ctx, q.path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, 0, err
		}
		r, _ := parseRecord(data)
		weight = r.in(stat.Czxid).Weight
	}
	slices.SortFunc(nodes, compare)
	read := make([]*Listed, len(nodes))
	errs := make([]error, len(nodes))
	slots := make(chan struct{}, 64) // reads in flight
	var wg sync.WaitGroup
	for i, n := range nodes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			read[i], errs[i] = q.contender(ctx, life, n)
		})
	}
	wg.Wait()
	if i := slices.IndexFunc(errs, func(e error) bool { return e != nil }); i >= 0 {
		return nil, 0, errs[i]
	}
	var out []Listed
	var before []Node
	for i, c := range read {
		if c == nil {
			continue // gone since
		}
		c.Holding = len(c.Slots) > 0 ||
			!q.sized() && !slices.ContainsFunc(before, func(n Node) bool { return q.recipe.Blocks(n, nodes[i]) })
		before = append(before, nodes[i])
		out = append(out, *c)
	}
	return out, weight, nil
}

func (q *Queue) contender(ctx context.Context, life *session.Life, n Node) (*Listed, error) {
	data, stat, err := life.Get(ctx, q.path+"/"+n.Name)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t := parseTicket(data)
	granted, _ := parseSlots(t.Slots) // none before it is admitted
	return &Listed{recipes.Contender{
		Owner: t.Owner,
		Token: cmp.Or(t.Token, recipes.Token(stat.Czxid)),
		Since: time.UnixMilli(stat.Ctime),
		Kind:  n.Kind,
		Mine:  stat.EphemeralOwner == life.ID(),
		ID:    n.Name,

		Permits: t.Permits,
		Slots:   granted,

		Flow: t.Flow,
	}, cmp.Or(t.Request, t.ID)}, nil
}
