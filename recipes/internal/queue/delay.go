package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// A holder with a lock delay says so in the directory's record while it holds.
// If it leaves without a release, whoever is first in line then finds that in the
// record, notes it there with the server's time, and waits. So a waiter that gave
// up is never taken for a holder that died, the delay is counted once, by one
// clock, and those who queue later need not begin it anew.
//
// The record must outlast a time when nobody is in line, in which the server
// would remove the directory. So as long as the record names a holder there is
// one more child, which is made and removed in the same transactions.

// keeper is that child's name. Libraries that take every child for a contender
// see it as the last in line.
const keeper = "delay-2147483647"

func (p *place) keeper() string { return p.q.path + "/" + keeper }

// sitOutDelay waits until no lock delay runs. Its caller is first in line, and
// has read the record since.
func (p *place) sitOutDelay(ctx context.Context, try bool) error {
	if !p.record.died(p.node.Seq) {
		return nil
	}
	left, err := p.noteDeath(ctx)
	if err != nil || left <= 0 {
		return err
	}
	if try {
		return recipes.ErrBusy
	}
	p.q.settings.Logger.Info("a holder died: waiting for its lock delay", "path", p.q.path, "left", left)
	t := time.NewTimer(left)
	defer t.Stop()
	for {
		if err := p.watchOwn(ctx); err != nil {
			return err
		}
		select {
		case <-t.C:
			return p.prove(ctx)
		case <-p.guard.Fired:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.life.Done():
			return p.life.Err()
		}
	}
}

// noteDeath writes into the record that the holder died, and since when, and
// returns what is left of its delay. Writing is also how the server's time is
// learned: it shows in the stat of the result.
func (p *place) noteDeath(ctx context.Context) (time.Duration, error) {
	r := p.record
	if r.Died && r.Since == 0 {
		r.Since = p.written.Mtime
	}
	r.Died = true
	stat, err := p.writeRecord(ctx, r)
	if errors.Is(err, errNotOurs) {
		return 0, nil // overwritten: nobody knows of a delay any more
	}
	if err != nil {
		return 0, err
	}
	since := r.Since
	if since == 0 {
		since = stat.Mtime
	}
	passed := min(max(0, time.Duration(stat.Mtime-since)*time.Millisecond), r.Delay)
	return r.Delay - passed, nil
}

// writeRecord writes the directory's record if the own node is still there and
// the record is as we know it, and repeats that until the outcome is known.
func (p *place) writeRecord(ctx context.Context, r record, with ...any) (*zk.Stat, error) {
	for {
		if !p.ours {
			return nil, errNotOurs
		}
		res, err := p.life.Multi(ctx, append([]any{
			&zk.CheckVersionRequest{Path: p.path(), Version: -1},
			&zk.SetDataRequest{Path: p.q.path, Data: r.encode(), Version: p.written.Version}}, with...)...)
		switch {
		case err == nil:
			p.record, p.written = r, res[1].Stat
			return res[1].Stat, nil
		case errors.Is(err, zk.ErrBadVersion):
			if err := p.readRecord(ctx); err != nil {
				return nil, err
			}
			if p.ours && p.record == r { // it was us: the answer was lost
				return p.written, nil
			}
		case unknownOutcome(err) && ctx.Err() == nil && p.life.Err() == nil:
		default:
			if errors.Is(err, zk.ErrNoNode) {
				err = errPlaceLost
			}
			return nil, err
		}
	}
}

var errNotOurs = fmt.Errorf("%w: this needs the data of the path's node, and somebody else's is there", recipes.ErrConflict)

// announce tells the others, before the lock is used, that it is held, and with a
// lock delay, what is to happen if this holder dies.
func (p *place) announce(ctx context.Context) error {
	var keep []any
	r := p.record
	if p.q.recipe.Announces {
		r.Leader = p.node.Seq
	}
	if delay := p.q.settings.LockDelay; delay > 0 {
		if p.record.Holder < 0 {
			keep = []any{&zk.CreateRequest{Path: p.keeper(), Flags: zk.FlagPersistent}}
		}
		r.Holder, r.Delay, r.Died, r.Since = p.node.Seq, delay, false, 0
	}
	p.announced, p.announcing = true, true
	_, err := p.writeRecord(ctx, r, keep...)
	if errors.Is(err, zk.ErrNodeExists) { // a copy from another directory
		_, err = p.writeRecord(ctx, r)
	}
	if err == nil {
		p.announcing = false
	}
	return err
}

func unknownOutcome(err error) bool { return errors.Is(err, session.ErrOutcomeUnknown) }
