package fallback

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/recipes"
)

const (
	perScript   = 100 // locks that one script renews
	perPipeline = 16  // scripts that one round trip carries
)

// A batch is what goes in one script.
type batch struct {
	holds []*hold
	query query
}

// send renews holds, on goroutines of their own.
func (r *renewer) send(holds []*hold) {
	if len(holds) == 0 {
		return
	}
	var plain []batch
	for _, b := range r.batches(holds) {
		if b.holds[0].l.cfg.replicas > 0 {
			r.dispatch([]batch{b})
			continue
		}
		plain = append(plain, b)
	}
	for part := range slices.Chunk(plain, perPipeline) {
		r.dispatch(part)
	}
}

func (r *renewer) dispatch(batches []batch) {
	sent := stamped()
	if r.c.spawn(func() { r.ship(batches, sent) }) {
		return
	}
	for _, b := range batches {
		r.returned(b)
	}
}

// batches groups holds that one script can renew.
func (r *renewer) batches(holds []*hold) []batch {
	split := r.split.Load()
	same := func(a, b *hold) int {
		n := cmp.Or(
			cmp.Compare(a.l.kind.name, b.l.kind.name),
			cmp.Compare(a.l.cfg.replicas, b.l.cfg.replicas),
			cmp.Compare(a.l.cfg.replicaWait, b.l.cfg.replicaWait))
		if n == 0 && split {
			n = cmp.Compare(slotKey(a.l.keys[0]), slotKey(b.l.keys[0]))
		}
		return n
	}
	slices.SortFunc(holds, same)
	var list []batch
	for _, h := range holds {
		last := len(list) - 1
		if last < 0 || len(list[last].holds) >= perScript || same(list[last].holds[0], h) != 0 {
			list = append(list, batch{query: query{script: h.l.kind.renew}})
			last++
		}
		b := &list[last]
		b.holds = append(b.holds, h)
		b.query.keys = append(b.query.keys, h.l.renewKeys()...)
		b.query.args = append(b.query.args, h.id, h.l.px())
	}
	return list
}

// ship sends batches and takes over the answers.
func (r *renewer) ship(batches []batch, sent stamp) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	results := make([]result, len(batches))
	acks := 0
	if cfg := batches[0].holds[0].l.cfg; cfg.replicas > 0 {
		results[0].reply, acks, results[0].err = r.c.runAndWait(ctx, batches[0].query, cfg.replicas, cfg.replicaWait)
	} else {
		queries := make([]query, len(batches))
		for i, b := range batches {
			queries[i] = b.query
		}
		results = r.c.runAll(ctx, queries)
	}
	for i, b := range batches {
		r.returned(b)
		if err := results[i].err; err != nil {
			r.failed(b, err)
			continue
		}
		for n, h := range b.holds {
			switch held := number(results[i].reply, n) == 1; {
			case held && acks >= h.l.cfg.replicas:
				h.renewed(trustFor(sent, h.l.cfg.ttl))
				r.prolonged(h)
			case !held && len(results[i].reply) == len(b.holds):
				h.lose(recipes.ErrNodeDeleted, true)
			default:
				r.planRetry(h)
			}
		}
	}
}

// returned notes that a batch is no longer under way.
func (r *renewer) returned(b batch) {
	for _, h := range b.holds {
		h.mu.Lock()
		h.inflight--
		h.mu.Unlock()
	}
}

// prolonged plans the next renewal of h.
func (r *renewer) prolonged(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.planNext(h)
}

func (r *renewer) failed(b batch, err error) {
	if redis.HasErrorPrefix(err, "CROSSSLOT") || says(err, "Script attempted to access keys that do not hash to the same slot") {
		r.split.Store(true) // a single client may have a cluster behind it
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, h := range b.holds {
			h.at = time.Time{} // at once
		}
		r.nudge()
		return
	}
	r.planRetry(b.holds...)
	r.c.set.Logger.Warn("locks could not be renewed; it is tried again", "locks", len(b.holds), "error", err)
}
