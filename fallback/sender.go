package fallback

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

const (
	maxSending = 2  // pipelines under way; what is asked meanwhile goes with the next
	maxBatch   = 64 // requests in one pipeline
)

// A sender sends what is asked at the same time in one pipeline, so that many callers cost
// few system calls, on either side. One alone is sent at once, on its own: only who would
// have to compete for the server anyway waits for the next pipeline. It is for a single
// server: in a cluster, a node that hangs would hold up what is for the others.
type sender struct {
	c *Client

	mu      sync.Mutex
	sending int
	waiting []*request
}

// A request waits to be sent.
type request struct {
	query query
	done  chan result // has room for one
}

// newSender returns nil for a service of several servers.
func newSender(c *Client) *sender {
	if _, single := c.rdb.(*redis.Client); !single {
		return nil
	}
	return &sender{c: c}
}

// send runs a script once, together with others where that is of use.
func (c *Client) send(ctx context.Context, q query) ([]any, error) {
	if c.sender == nil {
		return c.run(ctx, q)
	}
	return c.sender.run(ctx, q)
}

func (s *sender) run(ctx context.Context, q query) ([]any, error) {
	s.mu.Lock()
	if s.sending < maxSending {
		s.sending++
		s.mu.Unlock()
		defer s.next()
		return s.c.run(ctx, q)
	}
	r := &request{q, make(chan result, 1)}
	s.waiting = append(s.waiting, r)
	s.mu.Unlock()
	got := <-r.done
	return got.reply, got.err
}

// next is called when a pipeline has been answered: it sends what has come together.
func (s *sender) next() {
	s.mu.Lock()
	batch := s.waiting[:min(len(s.waiting), maxBatch)]
	s.waiting = s.waiting[len(batch):]
	if len(batch) == 0 {
		s.sending--
		s.waiting = nil
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	send := func() {
		defer s.next()
		ctx, cancel := s.c.detached(context.Background())
		defer cancel()
		queries := make([]query, len(batch))
		for i, r := range batch {
			queries[i] = r.query
		}
		for i, got := range s.c.runAll(ctx, queries) {
			batch[i].done <- got
		}
	}
	if !s.c.spawn(send) { // can't be: those who wait are work under way
		send()
	}
}
