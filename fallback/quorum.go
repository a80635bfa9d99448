package fallback

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// has is what a server has of a contender.
type has int

const (
	pending has = iota // it was asked, and has not answered yet
	doubt              // it may have the key, or may come to have it
	nothing            // it does not, and won't
	yes
)

// A ballot is one attempt to have the lock, under an id that is never used again. It
// goes on, until all servers have voted or were given up, after the caller has left.
type ballot struct {
	r    *Redlock
	id   string
	sent stamp

	voted chan struct{} // closed when all servers have voted, or were given up

	mu    sync.Mutex
	has   []has
	late  []*unanswered // of the servers in doubt
	token recipes.Token // the largest
	busy  bool          // another has the key on some server
	bad   int           // servers on which asking again is of no use
	fatal error         // why
	last  error
}

func (r *Redlock) newBallot() *ballot {
	return &ballot{r: r, id: r.newID(), sent: stamped(), voted: make(chan struct{}), has: make([]has, len(r.nodes)), late: make([]*unanswered, len(r.nodes))}
}

func (r *Redlock) acquire(ctx context.Context, op string, try bool) (*recipes.Grant, error) {
	if ctx.Err() != nil {
		return nil, r.fail(op, context.Cause(ctx))
	}
	if g, err := recipes.Nested(ctx, r.set, r.realm, r.name); g != nil || err != nil {
		if err != nil {
			err = r.fail(op, err)
		}
		return g, err
	}
	if err := r.enter(); err != nil {
		return nil, r.fail(op, err)
	}
	defer r.calls.Done()
	bound, stop := r.bound(ctx)
	defer stop()
	g, err := r.compete(bound, try)
	if err != nil {
		return nil, r.fail(op, err)
	}
	return g, nil
}

// enter counts a call, of which there are none once Close has begun.
func (r *Redlock) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing.Err() != nil {
		return context.Cause(r.closing)
	}
	r.calls.Add(1)
	return nil
}

// bound returns a copy of ctx that also ends when the lock is closed.
func (r *Redlock) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(r.closing, func() { cancel(context.Cause(r.closing)) })
	return ctx, func() { forget(); cancel(nil) }
}

func (r *Redlock) compete(ctx context.Context, try bool) (*recipes.Grant, error) {
	pause := newPause(10*time.Millisecond, 250*time.Millisecond)
	var last error
	for {
		b := r.newBallot()
		g, err := b.attempt(ctx, try)
		if g != nil {
			return g, nil
		}
		if err == nil {
			err = rest(ctx, pause.NextBackOff())
		}
		if err == nil {
			err = b.hopeless() // more have voted
		}
		if trouble := b.trouble(); trouble != nil {
			last = trouble
		}
		if err != nil {
			return nil, withTrouble(err, last)
		}
	}
}

// attempt returns a grant, or why there can't be one; or neither, if it is to be tried
// again. What it has not got it gives back.
func (b *ballot) attempt(ctx context.Context, try bool) (*recipes.Grant, error) {
	won, err := b.hold(ctx)
	if won {
		g, err := b.grant()
		if g != nil {
			return g, nil
		}
		b.withdrawLater()
		if !try && err == errLate {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.last = err
			return nil, nil
		}
		return nil, err
	}
	b.withdrawLater()
	if err == nil {
		err = b.hopeless()
	}
	if err == nil && try {
		err = b.failed()
	}
	return nil, err
}

func (b *ballot) withdrawLater() {
	b.r.calls.Go(func() { // ends soon
		t := time.NewTimer(min(b.r.cfg.nodeTimeout, DefaultNodeTimeout))
		defer t.Stop()
		select {
		case <-b.voted: // so that little is in doubt
		case <-t.C: // a server that hangs must not keep from everybody what the others have granted
		}
		b.withdraw(0, nil)
	})
}

// void reports whether it is certain that a server has nothing, and won't. Those who had
// not voted, or were given up, when it was asked for the first time may tell later.
func (b *ballot) void(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.has[n] == nothing || b.late[n] != nil && b.late[n].void.Load()
}

// failed returns what stood in the way up to now. Servers may still vote.
func (b *ballot) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy {
		return recipes.ErrBusy
	}
	return ErrNoQuorum
}

// trouble returns what last went wrong, if anything did.
func (b *ballot) trouble() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// hopeless returns why there can't be a majority, however often it is asked: too many
// servers refuse for good. Fewer of them are as good as servers that are down.
func (b *ballot) hopeless() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.has)-b.bad < b.r.quorum() {
		return b.fatal
	}
	return nil
}

// rest waits for d, or returns the cause of ctx's end.
func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hold asks the servers and reports whether more than half of them have the lock for
// us, as soon as that is certain. It does not wait for the others.
func (b *ballot) hold(ctx context.Context) (bool, error) {
	r := b.r
	young := r.cfg.ttl.Milliseconds()
	if r.cfg.restarted {
		young = 0
	}
	votes := r.ask(redlockKind.acquire, r.cfg.ttl.Milliseconds(), young, b.id, r.set.Owner)
	decided := make(chan bool, 1)
	go b.count(votes, decided) // ends with the votes
	select {
	case won := <-decided:
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		return won, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

func (b *ballot) count(votes <-chan vote, decided chan<- bool) {
	defer close(b.voted)
	quorum, won, lost := b.r.quorum(), 0, 0
	told := false
	for range b.r.nodes {
		v := <-votes
		if b.enter(v) {
			won++
		} else {
			lost++
		}
		if !told && (won >= quorum || len(b.r.nodes)-lost < quorum) {
			told = true
			decided <- won >= quorum
		}
	}
}

// enter takes a vote in, and reports whether it is for us.
func (b *ballot) enter(v vote) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch fateOf(v.err) {
	case answered:
		switch number(v.reply, 0) {
		case isGranted:
			b.has[v.n] = yes
			b.token = max(b.token, recipes.Token(number(v.reply, 1)))
			return true
		case isWaiting:
			b.busy = true
		case isSomething:
			b.bad, b.fatal = b.bad+1, b.r.nodes[v.n].l.conflict()
		case tooYoung:
			b.last = errYoung
		}
		b.has[v.n] = nothing
	case refused:
		b.has[v.n], b.last = nothing, translate(v.err)
		if errors.Is(b.last, recipes.ErrPermission) || errors.Is(b.last, recipes.ErrConflict) {
			b.bad, b.fatal = b.bad+1, b.last
		}
	case postponed:
		b.has[v.n], b.last = nothing, v.err
	case unknown:
		b.has[v.n], b.last = doubt, v.err
		errors.As(v.err, &b.late[v.n])
		if v.err == errHangs { // nothing was sent
			b.has[v.n] = nothing
		}
	}
	return false
}

const tooYoung = -4

var errYoung = errors.New("a server started a short time ago and may have forgotten what it acknowledged")

// withdraw gives back what any server has, or may come to have, in the background. When
// as many as a quorum needs are free, and have said whether they had the key, done is
// called, if it is there, with how many had the key and how many had lost it; or, if that
// can't be had, with an error. Whether the key was lost is not waited for for longer than
// for one answer: a server that hangs must not hold up a release.
func (b *ballot) withdraw(token recipes.Token, done func(had, lost int, err error)) {
	r := b.r
	b.mu.Lock()
	at := slices.Clone(b.has)
	b.mu.Unlock()
	var mu sync.Mutex
	free, left, had, lost := 0, 0, 0, 0
	var failed error // why a server could not be freed, if one could not
	for _, h := range at {
		if h == nothing {
			free++
		} else {
			left++
		}
	}
	over, late := done == nil, false
	tell := func(certain bool) { // with mu
		if over || !certain {
			return
		}
		over = true
		if free >= r.quorum() {
			failed = nil
		}
		done(had, lost, failed)
	}
	look := func() { // with mu
		tell(left == 0 || free >= r.quorum() && max(had, lost) >= r.quorum())
		if over || late || free < r.quorum() {
			return
		}
		late = true
		if !r.nodes[0].l.c.spawn(func() {
			time.Sleep(r.cfg.nodeTimeout)
			mu.Lock()
			defer mu.Unlock()
			tell(true)
		}) {
			tell(true)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	look()
	member := b.id + " " + strconv.FormatUint(uint64(token), 10)
	for i, h := range at {
		if h == nothing {
			continue
		}
		r.nodes[i].l.c.janitor.begin()
		r.nodes[i].l.c.janitor.do(errand{
			l: r.nodes[i].l, member: member, doubt: h != yes, lasts: 2*r.cfg.ttl + time.Second,
			void: func() bool { return b.void(i) },
			done: func(w was, repeated bool, err error) {
				mu.Lock()
				defer mu.Unlock()
				left--
				switch {
				case err == nil && w == wasHeld:
					had++
				case err == nil && w == wasNothing && !repeated && h == yes:
					lost++
				}
				if err == nil {
					free++
				} else if failed == nil {
					failed = err
				}
				look()
			},
		})
	}
}

// holder returns who has the key on more than half of the servers.
func (r *Redlock) holder(ctx context.Context) ([]recipes.Contender, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.calls.Done()
	votes := r.ask(redlockKind.list)
	count := make(map[string]int)
	var last error
	answers := 0
	for range r.nodes {
		select {
		case v := <-votes:
			if v.err != nil {
				last = translate(v.err)
				continue
			}
			answers++
			f := strings.SplitN(text(v.reply[0]), " ", 5)
			if len(f) != 5 || f[0] != "lr1" {
				continue
			}
			if count[f[3]]++; count[f[3]] == r.quorum() {
				token, _ := strconv.ParseUint(f[1], 10, 64)
				us, _ := strconv.ParseInt(f[2], 10, 64)
				return []recipes.Contender{{
					Owner: f[4], Token: r.tokenOf(f[3], recipes.Token(token)), Since: time.UnixMicro(us),
					Kind: "lock", Holding: true, Mine: r.own(f[3]), ID: f[3],
				}}, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if answers < r.quorum() {
		return nil, withTrouble(ErrNoQuorum, last)
	}
	return nil, nil
}
