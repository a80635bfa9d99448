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

// writeRecord writes the directory's record if the own node is still there, and
// repeats that until the outcome is known: the same record twice does no harm.
func (p *place) writeRecord(ctx context.Context, r record) (*zk.Stat, error) {
	for {
		res, err := p.life.Multi(ctx,
			&zk.CheckVersionRequest{Path: p.path(), Version: -1},
			&zk.SetDataRequest{Path: p.q.path, Data: r.encode(), Version: -1})
		switch {
		case err == nil:
			p.record, p.written = r, res[1].Stat
			return res[1].Stat, nil
		case unknownOutcome(err) && ctx.Err() == nil && p.life.Err() == nil:
			continue
		default:
			if errors.Is(err, zk.ErrNoNode) {
				err = errPlaceLost
			}
			return nil, err
		}
	}
}

// announceDelay tells the others, before the lock is used, what is to happen if
// this holder dies.
func (p *place) announceDelay(ctx context.Context) error {
	if !p.ours {
		return fmt.Errorf("%w: LockDelay needs the data of the path's node, and somebody else's is there", recipes.ErrConflict)
	}
	r := p.record
	r.Holder, r.Delay, r.Died, r.Since = p.node.Seq, p.q.settings.LockDelay, false, 0
	p.announced = true // whatever the outcome
	_, err := p.writeRecord(ctx, r)
	return err
}

func unknownOutcome(err error) bool { return errors.Is(err, session.ErrOutcomeUnknown) }
