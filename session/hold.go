package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// A Hold is a node of this life's session whose being there means that something
// is held. While there are holds, a heartbeat keeps the trust window open and
// checks their nodes. A hold is lost once: when the life ends, when its node is
// removed by somebody, or at suspension under the strict policy.
type Hold struct {
	l        *Life
	path     string
	czxid    int64 // of the node; 0: not known
	farewell []any
	lost     func(cause error, gone bool)
	dropped  chan struct{} // closed when it is lost or dropped

	cause error // why it was lost; these two are set before dropped is closed
	gone  bool
}

// Hold starts to hold the node at path, which must belong to this session. By its
// czxid it is told from a node that takes its name when it is gone; 0 is for a name
// that never comes again. If the trust window is not open wide enough, Hold asks the
// ensemble first, with one committed request, so that what it returns may be believed
// for a while.
//
// lost is called once if the hold is lost, not later than the end of the trust
// window, on a goroutine of its own. What follows from the loss, such as the end
// of the life, is announced when it has returned; if it blocks, that delays
// nobody by more than 50ms, and Close doesn't wait for it. gone says that the
// server has nothing left to remove: the node or its session is gone, or the
// session's end takes care of it. farewell are operations that [Session.Close] carries out
// together with the deletion of the node.
func (l *Life) Hold(ctx context.Context, path string, czxid int64, farewell []any, lost func(cause error, gone bool)) (*Hold, error) {
	h := &Hold{l: l, path: path, czxid: czxid, farewell: farewell, lost: lost, dropped: make(chan struct{})}
	for {
		if l.s.cfg.RevokeOnSuspend { // then nothing is held while the connection is down
			if err := l.waitForLink(ctx); err != nil {
				return nil, &Error{Op: "hold", Path: path, Reason: err}
			}
		}
		// The first time, also to see that heartbeats are allowed: they read nodes
		// that have the ACL of this one.
		if l.Remaining() < l.Timeout()/3 || !l.mayProve.Load() {
			if err := l.Prove(ctx, path); err != nil {
				return nil, err
			}
			l.mayProve.Store(true)
		}
		if l.register(h) {
			return h, nil
		}
		if err := l.Err(); err != nil {
			return nil, &Error{Op: "hold", Path: path, Reason: err}
		}
		if ctx.Err() != nil {
			return nil, &Error{Op: "hold", Path: path, Reason: context.Cause(ctx)}
		}
	}
}

// register adds h to the holds of a life whose window is open.
func (l *Life) register(h *Hold) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	strict := l.s.cfg.RevokeOnSuspend && !l.connected
	if l.ended != nil || time.Until(l.win.until) <= 0 || strict {
		return false
	}
	l.holds[h] = struct{}{}
	l.wg.Go(h.guard)
	kick(l.kickWatchdog)
	kick(l.kickHeartbeat)
	return true
}

// Remaining returns what is left of the trust window; zero or less once the hold
// is over.
func (h *Hold) Remaining() time.Duration {
	if isClosed(h.dropped) {
		return 0
	}
	return h.l.Remaining()
}

// Verify asks the ensemble whether the node is still there and its session alive,
// with one committed request, and a read by its side which tells whether it is not
// another node of that name. If not, the hold is lost before Verify returns.
func (h *Hold) Verify(ctx context.Context) error {
	replaced := make(chan error, 1)
	go func() { replaced <- h.replaced(ctx) }() // ends with ctx, or with the life
	err := h.l.Prove(ctx, h.path)
	if other := <-replaced; err == nil {
		err = other
	}
	if errors.Is(err, zk.ErrNoNode) {
		h.lose(ErrNodeGone, true)
	}
	return err
}

// replaced returns an error unless the node is the one that is held.
func (h *Hold) replaced(ctx context.Context) error {
	stat, err := h.l.Exists(ctx, h.path)
	if err == nil && (stat == nil || !h.isOwn(stat)) {
		err = &Error{Op: "prove", Path: h.path, Reason: zk.ErrNoNode}
	}
	return err
}

func (h *Hold) isOwn(stat *zk.Stat) bool {
	return stat.EphemeralOwner == h.l.id && (h.czxid == 0 || stat.Czxid == h.czxid)
}

// Drop ends the hold without calling lost. The node is the caller's to remove.
func (h *Hold) Drop() { h.remove(nil, false) }

// GiveUp is Drop, and Remove of the node, at once: [Session.Close] comes before both or
// after both.
func (h *Hold) GiveUp(with []any, done func(error)) { h.l.giveUp(h, h.path, with, done) }

// Lost returns what lost is called with, from the moment on when Remaining is
// zero because of it, which is before the call. The cause is nil for a hold that
// is not lost.
func (h *Hold) Lost() (cause error, gone bool) {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	if !isClosed(h.dropped) && h.l.ended != nil {
		return h.l.ended, true
	}
	return h.cause, h.gone
}

// remove reports whether the hold was still there.
func (h *Hold) remove(cause error, gone bool) bool {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	return h.removeLocked(cause, gone)
}

// removeLocked is remove for one who holds the life's mutex.
func (h *Hold) removeLocked(cause error, gone bool) bool {
	if isClosed(h.dropped) {
		return false
	}
	h.cause, h.gone = cause, gone
	delete(h.l.holds, h)
	close(h.dropped)
	return true
}

func (h *Hold) lose(cause error, gone bool) { revoke([]*Hold{h}, cause, gone) }

// patience is how long a callback that blocks is waited for.
const patience = 50 * time.Millisecond

// revoke ends holds and waits until their callbacks have returned, but not for
// long.
func revoke(holds []*Hold, cause error, gone bool) {
	returned := make(chan struct{}, len(holds))
	told := 0
	for _, h := range holds {
		if h.remove(cause, gone) {
			told++
			go func() { // the callback's: nobody waits for it
				h.lost(cause, gone)
				returned <- struct{}{}
			}()
		}
	}
	if told == 0 {
		return
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	for range told {
		select {
		case <-returned:
		case <-t.C:
			return
		}
	}
}

// guardAfter is how long something is held before its node is watched. A watch
// means an event when the node is deleted, and short holds shall not pay for that.
const guardAfter = 250 * time.Millisecond

// guard watches the node, so that its removal by somebody is soon noticed.
func (h *Hold) guard() {
	t := time.NewTimer(guardAfter)
	defer t.Stop()
	select {
	case <-t.C:
	case <-h.dropped:
		return
	case <-h.l.ctx.Done():
		return
	}
	for {
		w, err := h.l.Watch(h.l.ctx, h.path)
		if errors.Is(err, zk.ErrNoNode) || err == nil && !h.isOwn(w.Stat) {
			h.lose(ErrNodeGone, true)
			return
		}
		if err != nil {
			if isClosed(h.dropped) || h.l.Err() != nil {
				return
			}
			// The heartbeat's check has to do where reading is not allowed.
			select {
			case <-h.dropped:
			case <-h.l.ctx.Done():
			}
			return
		}
		select {
		case <-w.Fired:
		case <-h.dropped:
			return
		case <-h.l.ctx.Done():
			return
		}
	}
}

// Remaining returns how long the session is certain to live on without more news
// from the ensemble; zero or less if that can't be said.
func (l *Life) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return 0
	}
	return time.Until(l.win.until)
}

// Prove has the ensemble commit a request that changes nothing, fails unless the
// node at path is there, and renews the trust window. It returns nil, or an
// [Error] whose reason is zk.ErrNoNode, the life's end or the cause of ctx's.
func (l *Life) Prove(ctx context.Context, path string) error {
	_, err := repeat(ctx, l, "prove", path, func(c *zk.Conn) ([]zk.MultiResponse, error) {
		return l.commit(c, &zk.CheckVersionRequest{Path: l.Full(path), Version: -1})
	})
	return err
}

// farewell deletes what was held, in order, before the session is closed: an
// orderly exit is no death. Those who wait are served sooner and know that the
// lock was released. Removals that are under way, which may not have been sent yet, are
// sent once more, since what goes with them counts: the second finds no node, and does
// nothing. It does not wait for long: closing does the rest.
func (l *Life) farewell(holds map[*Hold]struct{}, removals map[*removal]struct{}) {
	var last [][]any
	for h := range holds {
		ops := []any{&zk.DeleteRequest{Path: l.Full(h.path), Version: -1}}
		for _, op := range h.farewell {
			if op, err := l.below(op); err == nil {
				ops = append(ops, op)
			}
		}
		last = append(last, ops)
	}
	for r := range removals {
		if len(r.ops) > 1 {
			last = append(last, r.ops)
		}
	}
	if len(last) == 0 {
		return
	}
	finished := make(chan struct{}, len(last))
	l.mu.Lock()
	up := l.connected
	l.mu.Unlock()
	if !up {
		return
	}
	for _, ops := range last {
		l.wg.Go(func() {
			l.leave(ops)
			finished <- struct{}{}
		})
	}
	t := time.NewTimer(150 * time.Millisecond)
	defer t.Stop()
	for range last {
		select {
		case <-finished:
		case <-t.C:
			return
		}
	}
}

// leave deletes a node, with all of the operations behind it that are not refused. What
// they were to undo may be on its way, and comes to nothing without the node.
func (l *Life) leave(ops []any) {
	for {
		res, err := l.conn.Multi(ops...)
		bad := firstRefused(res)
		if err == nil || bad <= 0 {
			return
		}
		ops = slices.Delete(slices.Clone(ops), bad, bad+1)
	}
}
