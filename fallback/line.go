package fallback

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A place is one request for a lock on the server. Its id is never used again: a
// message that was on its way for long can't be taken for another.
type place struct {
	l      *lock
	want   want
	id     string
	member string

	pushes  chan push
	op      string // of the next request: join, try, touch
	doubt   bool   // whether the server has it is unknown
	waits   bool   // the server has it in line
	touched stamp  // when the last request was sent to which the server said so
	pause   *backoff.ExponentialBackOff
}

// The operations of an acquiring script.
const (
	opJoin  = "join"
	opTry   = "try"
	opTouch = "touch"
)

// What an acquiring script answers.
const (
	isGranted   = 1
	isWaiting   = 0 // or busy
	notInLine   = -1
	givenUp     = -2
	isSomething = -3 // else
	holderGone  = -4 // under which it was to be let in
)

// acquire returns what is wanted of the lock when its turn has come; with try, at once or
// ErrBusy. If it fails, it leaves nothing behind: what can't be known is seen to by
// the janitor.
func (l *lock) acquire(ctx context.Context, w want, try bool) (*hold, error) {
	var last error
	for {
		p := l.newPlace(w, try)
		h, err := p.wait(ctx, try, &last)
		l.c.inbox.forget(p.id)
		if h == nil {
			p.abandon(0)
		}
		if h != nil {
			return h, nil
		}
		if err != nil {
			return nil, withTrouble(err, last)
		}
		// The place was lost. There is another at the tail.
	}
}

func (l *lock) newPlace(w want, try bool) *place {
	id := l.c.newID()
	p := &place{l: l, want: w, id: id, member: l.member(id, w), op: opJoin}
	if try {
		p.op = opTry
	} else {
		p.pushes = l.c.inbox.register(id)
	}
	return p
}

// wait waits for the turn of this place. It returns nothing if the place is lost.
func (p *place) wait(ctx context.Context, try bool, last *error) (*hold, error) {
	confirming := p.l.cfg.replicas > 0 // the next request is for the replicas, too
	for {
		if p.waits && p.l.set.FailOnLoss && p.touched.elapsed() > p.l.cfg.live {
			return nil, recipes.ErrSessionLost
		}
		sent := stamped()
		args := []any{p.op, p.l.c.inboxes(), p.l.cfg.live.Milliseconds(), p.l.px(), p.member}
		q := ask{query: query{p.l.kind.acquire, p.l.keys, append(args, p.want.args...)}}
		if confirming {
			q = p.l.withReplicas(q.query)
		}
		if p.op != opTouch {
			p.doubt = true
		}
		if p.op == opTouch { // give up early enough to look elsewhere
			q.limit = p.l.cfg.live + q.wait
		}
		reply, acks, err := p.l.c.ask(ctx, q)
		if ended := p.l.c.ended(ctx); ended != nil {
			return nil, ended
		}
		var look time.Duration // when to look again
		switch fateOf(err) {
		case answered:
			if number(reply, 2) != 0 {
				p.l.c.inbox.refused("publish", nil)
			}
			switch number(reply, 0) {
			case isGranted:
				p.waits, p.doubt = true, false // there is something to give back
				if p.l.cfg.replicas > 0 && !confirming {
					p.op, confirming = opTouch, true
					continue
				}
				if acks < p.l.cfg.replicas {
					return nil, fmt.Errorf("%w: %d of %d within %v", ErrNotReplicated, acks, p.l.cfg.replicas, p.l.cfg.replicaWait)
				}
				return p.hold(trustFor(sent, p.l.cfg.ttl), number(reply, 1), reply[3:]), nil
			case isWaiting:
				p.doubt = false
				if try {
					return nil, recipes.ErrBusy
				}
				p.waits, p.touched, p.op = true, sent, opTouch
				p.l.c.inbox.listen()
				look = p.lookAgain(number(reply, 1))
			case isSomething:
				p.waits, p.doubt = false, false
				return nil, p.conflict(number(reply, 1))
			case holderGone:
				p.waits, p.doubt = false, false
				return nil, errHolderGone
			default: // where the first request is still on its way, the doubt remains
				lost := p.waits
				p.waits = false
				if lost && p.l.set.FailOnLoss {
					return nil, recipes.ErrNodeDeleted
				}
				return nil, nil
			}
		case refused:
			p.doubt = false
			return nil, translate(err)
		case unknown:
			p.op = opTouch // it never queues, so it may be sent any number of times
			*last, look = err, p.backOff()
		case postponed:
			if p.op != opTouch {
				p.doubt = false
			}
			*last, look = err, p.backOff()
		}
		confirming = false
		granted, err := p.sleep(ctx, look)
		if err != nil {
			return nil, err
		}
		if granted == nil {
			continue
		}
		if t, ok := p.enough(granted.claim); ok && !p.l.confirms() {
			return p.hold(t, granted.token, granted.further), nil
		}
		confirming = p.l.cfg.replicas > 0
	}
}

// conflict says what the key is used for, as far as that is known.
func (p *place) conflict(size int64) error {
	if p.l.kind.sized && size > 0 {
		return fmt.Errorf("%w: its size is %d", recipes.ErrConflict, size)
	}
	return p.l.conflict()
}

// enough returns the trust in what a message said. The server granted the lock after
// it had answered our last request that it had not: so the claim counts from before
// that was sent, however long the message was on its way. It reports whether enough is
// left of it to begin with.
func (p *place) enough(claim time.Duration) (trust, bool) {
	t := trustFor(p.touched, claim)
	return t, p.waits && t.remaining() > claim/3
}

// sleep waits for a message or until it is time to look. It returns what was granted.
func (p *place) sleep(ctx context.Context, d time.Duration) (*push, error) {
	var lost <-chan time.Time
	if p.waits && p.l.set.FailOnLoss {
		t := time.NewTimer(p.l.cfg.live - p.touched.elapsed())
		defer t.Stop()
		lost = t.C
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case m := <-p.pushes:
		if ended := p.l.c.ended(ctx); ended != nil {
			return nil, ended
		}
		if m.granted {
			return &m, nil
		}
		return nil, nil
	case <-t.C:
		return nil, nil
	case <-lost:
		return nil, recipes.ErrSessionLost
	case <-ctx.Done():
	case <-p.l.c.closing.Done():
	}
	return nil, p.l.c.ended(ctx)
}

// lookAgain says when a waiter is to look again for itself: soon after the holder's
// time is over, and in any case often enough to be believed alive. The request touches
// the key, which makes it go if its time is over, and gives the lock to whoever is
// first, not to the one that asks.
func (p *place) lookAgain(ms int64) time.Duration {
	d := p.l.cfg.live / 3
	d -= rand.N(d / 8)
	if ms >= 0 {
		d = min(d, time.Duration(ms)*time.Millisecond+rand.N(20*time.Millisecond)+time.Millisecond)
	}
	if p.l.c.inbox.hears() {
		p.pause = nil
		return d
	}
	return min(d, p.backOff())
}

func (p *place) backOff() time.Duration {
	if p.pause == nil {
		p.pause = newPause(2*time.Millisecond, 250*time.Millisecond)
	}
	return min(p.pause.NextBackOff(), p.l.cfg.live/3)
}

func (p *place) hold(t trust, token int64, further []any) *hold {
	h := &hold{l: p.l, want: p.want, id: p.id, member: p.member, since: stamped(), trust: t, token: recipes.Token(token)}
	for i := range further {
		h.further = append(h.further, number(further, i))
	}
	if t.remaining() <= 0 || !p.l.c.renewer.add(h) {
		return nil // the answer came too late to be of use, or the client is closed
	}
	return h
}

// abandon gives back whatever the server has of the place, or may come to have.
func (p *place) abandon(closed time.Duration) {
	if !p.waits && !p.doubt {
		return
	}
	p.l.c.janitor.begin()
	p.l.c.janitor.do(errand{
		l: p.l, member: p.member, doubt: p.doubt, closed: closed,
		lasts: 2*p.l.cfg.ttl + p.l.cfg.live + time.Second,
	})
}
