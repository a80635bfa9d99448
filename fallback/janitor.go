package fallback

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// tomb is for how long a request that was given up is kept from coming late.
const tomb = time.Minute

// The janitor ends on the server what has ended here, and repeats it until it has
// proof, whatever happens on the wire. No caller's context bounds that.
//
// The proof for a request whose outcome is unknown is a tombstone: the script that
// ends it finds nothing, and leaves its id there, so that the request is refused if
// it arrives afterwards.
type janitor struct {
	c    *Client
	free chan struct{} // bounds how many are under way at a time

	mu      sync.Mutex
	pending int
	none    chan struct{} // closed while there is nothing to do
	failed  int           // without proof
}

// An errand is one thing to end.
type errand struct {
	l      *lock
	member string
	doubt  bool          // whether it is there, or will be, is unknown
	closed time.Duration // keep the lock closed for so long
	lasts  time.Duration // for how long it can last without us, beside the lock's delay
	void   func() bool   // nil, or: nothing is to be ended, as was learnt meanwhile
	// done is called once, with what the server had: the result of the script, and
	// whether an earlier attempt may have been carried out. An error means that it may
	// still be there.
	done func(was was, repeated bool, err error)
}

// was is what the server had of a contender.
type was int64

const (
	wasNothing was = 0
	wasWaiting was = 1
	wasHeld    was = 2
	wasExpired was = 3 // by our clock: nobody was asked
	notBarred  was = -1
)

func newJanitor(c *Client) *janitor {
	j := &janitor{c: c, free: make(chan struct{}, 64), none: make(chan struct{})}
	close(j.none)
	return j
}

// begin announces an errand: from then on, drain waits for it.
func (j *janitor) begin() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pending++; j.pending == 1 {
		j.none = make(chan struct{})
	}
}

// cancel takes back what begin said.
func (j *janitor) cancel() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pending--; j.pending == 0 {
		close(j.none)
	}
}

// do starts an errand that was announced, and returns at once.
func (j *janitor) do(e errand) {
	finish := func(w was, repeated bool, err error) {
		if e.done != nil {
			e.done(w, repeated, err)
		}
		if err != nil || w == wasExpired {
			j.mu.Lock()
			j.failed++
			j.mu.Unlock()
		}
		j.cancel()
	}
	if !j.c.spawn(func() { finish(j.run(e)) }) {
		finish(wasNothing, false, recipes.ErrSessionClosed) // Close has seen to it
	}
}

func (j *janitor) run(e errand) (was, bool, error) {
	barred := int64(0)
	if e.doubt {
		barred = tomb.Milliseconds()
	}
	q := query{e.l.kind.leave, e.l.keys, []any{j.c.inboxes(), e.member, barred, e.closed.Milliseconds()}}
	begun, repeated := stamped(), false
	pause := newPause(5*time.Millisecond, time.Second)
	for e.void == nil || !e.void() {
		j.free <- struct{}{}
		a := j.c.answer(context.Background(), ask{query: q})
		<-j.free
		reply := a.reply
		switch err := a.err; fateOf(err) {
		case answered:
			if number(reply, 1) != 0 {
				j.c.inbox.refused("publish", nil)
			}
			if w := was(number(reply, 0)); w != notBarred {
				return w, repeated, nil
			}
			repeated = true
		case refused:
			j.c.set.Logger.Warn("a lock can't be given back before its TTL is over", "key", e.l.name, "error", err)
			return wasNothing, repeated, translate(err)
		case unknown:
			repeated = true
		}
		lasts := e.lasts
		if j.c.closing.Err() == nil {
			lasts += e.l.set.LockDelay // for which Close does not wait
		}
		if begun.elapsed() > lasts {
			return wasExpired, true, nil
		}
		time.Sleep(pause.NextBackOff())
	}
	return wasNothing, false, nil
}

// drain waits until nothing is left to do, or has gone by itself.
func (j *janitor) drain() error {
	j.mu.Lock()
	none, before := j.none, j.failed
	j.mu.Unlock()
	<-none // everything ends by itself
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := j.failed - before; n > 0 {
		return fmt.Errorf("lockkeeper: close: %d locks or places could not be given back; they expire", n)
	}
	return nil
}
