package fair

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// ErrSpent: the ticket has become a grant, or was left.
var ErrSpent = errors.New("the ticket was used or left")

// A Ticket is a place in the queue. It moves up whether or not somebody waits for it,
// and when its turn has come, the lock is kept for it: so one that is not wanted any
// more must be left. It ends with the grant, with Leave, or with its session; one that
// nobody cares for lasts until then, and holds everybody up once it is first. All
// methods are safe for concurrent use.
type Ticket struct {
	l      *Lock
	life   *session.Life
	ctx    context.Context // ends with leave
	cancel context.CancelFunc
	bid    queue.Bid // for the lock's queue, behind a gate
	acc    *account  // of the flow, if there is one

	turn chan struct{} // closed when its turn has come, or never will
	left chan struct{} // closed when it is left
	gone chan struct{} // closed when nothing of it is left but the grant

	leaving sync.Once // the place is given up, or became a grant

	mu    sync.Mutex
	at    *queue.Place  // before the gate of the flow; nil after that
	main  *queue.Place  // in the lock's queue; nil before that
	m     *marker       // of main, in the flow's line
	held  *queue.Held   // when its turn has come
	err   error         // why it never will
	spent bool          // it has become a grant, or was left
	news  chan struct{} // closed, and replaced, when something was noticed
}

// Join takes a place in the queue, or in that of its flow, and returns without waiting
// for the turn. It blocks for a round trip or two, which ctx bounds; ctx has no part in
// the ticket. If it fails, it leaves nothing behind; where the connection is down at
// that moment, that is seen to in the background.
//
// Errors are those of Lock but for ErrDeadlock: to join again while one holds is no
// mistake.
func (l *Lock) Join(ctx context.Context) (*Ticket, error) {
	if ctx.Err() != nil {
		return nil, l.fail("join", context.Cause(ctx))
	}
	for {
		t, err := l.join(ctx)
		if err == nil {
			return t, nil
		}
		if t == nil || !queue.Lost(ctx, t.life, err) { // without a place there is none to lose
			return nil, l.fail("join", err)
		}
	}
}

// join returns the ticket also if it could not take a place, unless there is no
// session.
func (l *Lock) join(ctx context.Context) (*Ticket, error) {
	life, err := l.sess.Life(ctx)
	if err != nil {
		return nil, err
	}
	t := &Ticket{l: l, life: life, acc: l.account(), turn: make(chan struct{}), left: make(chan struct{}), gone: make(chan struct{}), news: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	b := queue.Bid{Keyword: queue.Contender, Noticed: t.notice}
	if l.gate == nil {
		t.main, err = l.main.Enter(ctx, life, b)
	} else {
		b.Flow, b.Request = l.p.Name, rand.Text()
		t.bid = l.gate.bid(t.acc, b)
		t.at, err = l.gate.enter(ctx, life, b)
	}
	if err != nil {
		t.leaving.Do(func() { close(t.gone) })
		t.fail(err)
		return t, err
	}
	go t.advance() // ends with the turn, leave, or the life
	return t, nil
}

// advance takes the ticket from its place to the turn.
func (t *Ticket) advance() {
	main := t.main
	if t.at != nil {
		m, err := (*marker)(nil), error(nil)
		if main, m, err = t.l.gate.pass(t.ctx, t.life, t.at, t.acc, t.bid); err != nil {
			t.abandon(t.at, err)
			t.fail(err)
			return
		}
		t.mu.Lock()
		t.at, t.main, t.m = nil, main, m
		t.mu.Unlock()
		t.notice()
	}
	err := main.Turn(t.ctx)
	var held *queue.Held
	if err == nil {
		held, err = main.Hold(t.ctx, t.lost)
	}
	if err != nil {
		t.abandon(main, err)
		t.fail(err)
		return
	}
	t.m.remove() // who has the lock does not wait in line any more
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = held
	switch {
	case t.err != nil: // lost at once
	case t.spent: // left meanwhile
		t.err = ErrSpent
		close(t.turn)
		t.forgo()
	default:
		close(t.turn)
	}
}

// lost is called when the lock is lost before there is a grant.
func (t *Ticket) lost(cause error, gone bool) {
	t.mu.Lock()
	main := t.main
	if t.err == nil {
		t.err = cause
		if t.held == nil {
			close(t.turn)
		}
	}
	t.mu.Unlock()
	if gone {
		t.leaving.Do(t.vanished)
		return
	}
	go t.abandon(main, cause) // it uses the hold, whose call this is
}

// abandon gives the place up.
func (t *Ticket) abandon(p *queue.Place, why error) {
	t.leaving.Do(func() { p.Leave(why, t.vanished) })
}

// forgo gives the lock up, which is held for the ticket.
func (t *Ticket) forgo() {
	t.leaving.Do(func() { t.held.Leave(t.vanished) })
}

// vanished is called when the place is gone; then its marker goes, so that never more
// of the flow are in line than there are markers.
func (t *Ticket) vanished() {
	m := t.m
	m.remove()
	go func() { // ends with the answer or the life
		m.waitGone()
		close(t.gone)
	}()
}

// fail says that the turn will never come.
func (t *Ticket) fail(err error) {
	t.cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
		close(t.turn)
	}
}

// holds reports whether ctx comes from a live grant of the lock.
func (l *Lock) holds(ctx context.Context) bool {
	h, _ := recipes.HeldHold(ctx, l.sess.Realm(), l.Path(), queue.Contender.Kind)
	return h != nil
}

// notice has Ahead look again.
func (t *Ticket) notice() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.news)
	t.news = make(chan struct{})
}

// Wait waits for the turn and returns the grant. If ctx ends first, the ticket keeps
// its place, and Wait can be called again. It returns the grant once; afterwards the
// error is ErrSpent, as it is after Leave. If the place was lost, with its session or
// because somebody removed it, that is the error (recipes.ErrSessionLost,
// ErrSessionClosed or ErrNodeDeleted; ErrSuspended, where the session revokes on that, if
// the turn had come), and the ticket is of no more use: a ticket doesn't queue again,
// Lock does.
//
// Further errors, inside a *recipes.Error: context.Cause(ctx); recipes.ErrDeadlock (ctx
// comes from a live grant of this lock), ErrConflict, ErrPermission, ErrExhausted.
func (t *Ticket) Wait(ctx context.Context) (*recipes.Grant, error) {
	if ctx.Err() != nil {
		return nil, t.l.fail("wait", context.Cause(ctx))
	}
	g, err := t.wait(ctx)
	return g, t.l.fail("wait", err)
}

func (t *Ticket) wait(ctx context.Context) (*recipes.Grant, error) {
	select {
	case <-t.turn:
	default:
		if t.l.holds(ctx) {
			return nil, recipes.ErrDeadlock
		}
		select {
		case <-t.turn:
		case <-t.left:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t.mu.Lock()
	switch {
	case t.spent:
		t.mu.Unlock()
		return nil, ErrSpent
	case t.err != nil:
		defer t.mu.Unlock()
		return nil, t.err
	}
	t.spent = true
	held, main := t.held, t.main
	t.mu.Unlock()
	g, err := held.Grant()
	if err != nil {
		t.abandon(main, err)
		return nil, err
	}
	t.leaving.Do(func() { close(t.gone) })
	return g, nil
}

// Leave gives the place up. That is carried out even if ctx is over: ctx bounds only
// the wait for the confirmation, and its end is the only error. Leave is idempotent,
// and nothing happens if the ticket has become a grant, so that it can be deferred.
func (t *Ticket) Leave(ctx context.Context) error {
	t.leave()
	select {
	case <-t.gone:
		return nil
	default:
	}
	select {
	case <-t.gone:
		return nil
	case <-ctx.Done():
		return t.l.fail("leave", context.Cause(ctx))
	}
}

// leave begins to give the place up.
func (t *Ticket) leave() {
	t.cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.spent {
		return
	}
	t.spent = true
	close(t.left)
	if t.held != nil {
		t.forgo()
	}
}
