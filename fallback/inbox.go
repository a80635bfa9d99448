package fallback

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/redis/go-redis/v9"
)

const (
	pulse      = time.Second      // how often a quiet subscription is asked for a sign of life
	deadAfter  = 3 * pulse        // without any sign, it is made anew
	idleAfter  = 30 * time.Second // without any waiter, it is given up
	deafRepeat = 10 * time.Second // how long a refused subscription is not tried again
)

// A push is what a waiter is told.
type push struct {
	granted bool // or else only: look for yourself
	token   int64
	claim   time.Duration
	further []any // integers
}

// The inbox is the one channel by which this client is told that a waiter of it has
// been granted a lock. It is open while somebody waits. A message can be lost: those
// published while the subscription was down are. So every waiter looks for itself when
// a subscription has just been confirmed, and from time to time in any case.
type inbox struct {
	c *Client

	mu      sync.Mutex
	waiters map[string]chan push // by id
	open    bool                 // there is a reader
	closed  bool
	sub     *redis.PubSub
	idle    time.Time // since when nobody waits, if nobody does
	deaf    time.Time // until when we can't rely on messages
	warned  bool
	stop    chan struct{}
}

func newInbox(c *Client) *inbox {
	return &inbox{c: c, waiters: make(map[string]chan push), stop: make(chan struct{})}
}

// register must come before the request that may lead to a message.
func (b *inbox) register(id string) chan push {
	ch := make(chan push, 2)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiters[id] = ch
	return ch
}

func (b *inbox) forget(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiters, id)
	if len(b.waiters) == 0 {
		b.idle = time.Now()
	}
}

// listen is called by one that has to wait. It does not wait for the subscription:
// when that is confirmed, all waiters are told to look.
func (b *inbox) listen() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open || b.closed || time.Now().Before(b.deaf) {
		return
	}
	b.open = b.c.spawn(b.read)
}

// hears reports whether messages can be relied on.
func (b *inbox) hears() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !time.Now().Before(b.deaf)
}

// refused notes that publishing or subscribing was refused: then waiters poll. An
// inbox is as good as those who write to it: they are likely to have our rights.
func (b *inbox) refused(what string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deaf = time.Now().Add(deafRepeat)
	if !b.warned {
		b.warned = true
		b.c.set.Logger.Warn("no messages: waiters ask again and again instead; the server's user needs the channels "+
			b.c.inboxes()+"*", "refused", what, "error", err)
	}
}

// read is the reader. It makes a new subscription whenever the old one shows no life.
func (b *inbox) read() {
	pause := newPause(100*time.Millisecond, time.Second)
	for b.wanted() {
		sub := b.c.rdb.Subscribe(context.Background(), b.c.inboxes()+b.c.id)
		over := make(chan struct{})
		if !b.use(sub) || !b.c.spawn(func() { b.pulse(sub, over) }) {
			sub.Close()
			return // closed
		}
		err := b.receive(sub, pause)
		close(over)
		sub.Close()
		var answer redis.Error
		if errors.As(err, &answer) && fateOf(err) == refused {
			b.refused("subscribe", err)
			b.end()
			b.wakeAll()
			return
		}
		select {
		case <-time.After(pause.NextBackOff()):
		case <-b.stop:
		}
	}
}

// end says that there is no reader any more.
func (b *inbox) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = false
}

// wanted reports whether anybody needs the subscription. If nobody does, the reader is
// over: whoever comes later starts another.
func (b *inbox) wanted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = !b.closed && len(b.waiters) > 0
	return b.open
}

func (b *inbox) use(sub *redis.PubSub) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sub = sub
	return !b.closed
}

// pulse asks for signs of life, and gives up a subscription that nobody needs.
func (b *inbox) pulse(sub *redis.PubSub, over <-chan struct{}) {
	t := time.NewTicker(pulse)
	defer t.Stop()
	for {
		select {
		case <-over:
			return
		case <-t.C:
		}
		b.mu.Lock()
		idle := len(b.waiters) == 0 && time.Since(b.idle) > idleAfter
		b.mu.Unlock()
		if idle {
			sub.Close()
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), pulse)
		sub.Ping(ctx) // if it fails, the reader sees it
		cancel()
	}
}

func (b *inbox) receive(sub *redis.PubSub, pause *backoff.ExponentialBackOff) error {
	for {
		// A time-out may come in the middle of a message, so it is the end.
		msg, err := sub.ReceiveTimeout(context.Background(), deadAfter)
		if err != nil {
			return err
		}
		pause.Reset()
		switch msg := msg.(type) {
		case *redis.Subscription:
			b.wakeAll()
		case *redis.Message:
			b.deliver(msg.Payload)
		}
	}
}

// wakeAll has every waiter look for itself.
func (b *inbox) wakeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ch := range b.waiters {
		select {
		case ch <- push{}:
		default: // it has something to read
		}
	}
}

// deliver reads 'id token claim', and what the lock may say beside.
func (b *inbox) deliver(payload string) {
	f := strings.Fields(payload)
	if len(f) < 3 {
		return
	}
	token, err1 := strconv.ParseInt(f[1], 10, 64)
	ms, err2 := strconv.ParseInt(f[2], 10, 64)
	if err1 != nil || err2 != nil {
		return
	}
	p := push{granted: true, token: token, claim: time.Duration(ms) * time.Millisecond}
	for _, s := range f[3:] {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return
		}
		p.further = append(p.further, n)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.waiters[f[0]] <- p: // nobody: it has gone
	default:
	}
}

// close ends the subscription; its reader is one of the goroutines that Close waits for.
func (b *inbox) close() {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return
	}
	b.closed = true
	close(b.stop)
	sub := b.sub
	b.mu.Unlock()
	if sub != nil {
		sub.Close()
	}
}

// newPause returns a back-off with jitter that never gives up. It is for one call: it
// is not safe for concurrent use.
func newPause(first, most time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(first), backoff.WithMaxInterval(most), backoff.WithMaxElapsedTime(0))
}
