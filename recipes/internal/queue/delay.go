package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// A holder with a lock delay says so in the directory's record while it holds.
// If it leaves without a release, whoever is first in line then finds that in the
// record, notes it there with the server's time, and waits. So a waiter that gave
// up is never taken for a holder that died, the delay is counted once, by one
// clock, and those who queue later need not begin it anew.
//
// Only who holds alone can ask for a delay: it is there for what the holder may
// have written last. Where several are first in line at once, because they don't
// exclude each other, all of them wait, each note is made by one of them, and the
// first that has waited takes the delay out of the record: none of them writes it
// at its release, and it must not keep the directory.
//
// The record must outlast a time when nobody is in line, in which the server
// would remove the directory. So as long as the record names a holder there is
// one more child, which is made and removed in the same transactions.

// keeper is that child's name. Libraries that take every child for a contender
// see it as the last in line.
const keeper = "delay-2147483647"

func (p *Place) keeper() string { return p.q.path + "/" + keeper }

// sitOutDelay waits until no lock delay runs. Its caller is first in line, and
// has read the record since.
func (p *Place) sitOutDelay(ctx context.Context, try bool) error {
	if !p.record.died(p.node.Seq) || fault.Is(fault.DelayOfWitness) && p.record.Died {
		return nil
	}
	left, err := p.noteDeath(ctx)
	if err != nil {
		return err
	}
	if left <= 0 {
		return p.delayIsOver(ctx)
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
			if err := p.prove(ctx); err != nil {
				return err
			}
			return p.delayIsOver(ctx)
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
func (p *Place) noteDeath(ctx context.Context) (time.Duration, error) {
	stat, err := p.writeRecord(ctx, func(r record) (record, bool) {
		return r.noted(p.written.Mtime), r.died(p.node.Seq)
	})
	if errors.Is(err, errNotOurs) {
		return 0, nil // overwritten: nobody knows of a delay any more
	}
	if err != nil || stat == nil {
		return 0, err
	}
	return p.record.left(stat.Mtime), nil
}

// noted returns what a record that was written at mtime becomes when the holder's death
// is noted in it.
func (r record) noted(mtime int64) record {
	if r.Died && r.Since == 0 {
		r.Since = mtime
	}
	r.Died = true
	return r
}

// left returns what is left of the delay, now that the death is noted in a record that
// was written at mtime, the present by the server's clock.
func (r record) left(mtime int64) time.Duration {
	since := cmp.Or(r.Since, mtime)
	return r.Delay - min(max(0, time.Duration(mtime-since)*time.Millisecond), r.Delay)
}

// renewDelayed returns the operations that remove a directory in which the keeper is
// the only child, so that it can be made anew. A lock delay is sat out first, as by one
// in line, and until then the queue has not drained.
func (q *Queue) renewDelayed(ctx context.Context, life *session.Life, r record, stat *zk.Stat) ([]any, error) {
	kept, err := life.Exists(ctx, q.path+"/"+keeper)
	if err != nil {
		return nil, err
	}
	if kept == nil {
		return nil, recipes.ErrExhausted // somebody is in line
	}
	version := stat.Version
	if r = r.in(stat.Czxid); r.died(math.MaxInt64) {
		r = r.noted(stat.Mtime)
		res, err := life.Multi(ctx, &zk.SetDataRequest{Path: q.path, Data: r.encode(), Version: version})
		switch {
		case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode), unknownOutcome(err) && life.Err() == nil && ctx.Err() == nil:
			return nil, recipes.ErrExhausted
		case err != nil:
			return nil, err
		case r.left(res[0].Stat.Mtime) > 0:
			return nil, recipes.ErrExhausted
		}
		version = res[0].Stat.Version
	}
	return []any{
		&zk.DeleteRequest{Path: q.path + "/" + keeper, Version: -1},
		&zk.DeleteRequest{Path: q.path, Version: version},
	}, nil
}

// delayIsOver takes a delay that has passed out of the record, for one that won't
// do so by its release. It leaves no mark for the holder's own number: another may
// still be there under it.
func (p *Place) delayIsOver(ctx context.Context) error {
	if p.node.Alone {
		return nil
	}
	clear := func(r record) (record, bool) {
		due := r.died(p.node.Seq)
		n := newRecord(r.Recipe)
		n.Dir, n.Released, n.Weight, n.Clock = r.Dir, max(r.Released, r.Holder-1), r.Weight, r.Clock
		return n, due
	}
	_, err := p.writeRecord(ctx, clear, &zk.DeleteRequest{Path: p.keeper(), Version: -1})
	if errors.Is(err, errPlaceLost) { // or somebody has removed the keeper
		_, err = p.writeRecord(ctx, clear)
	}
	if errors.Is(err, errNotOurs) {
		return nil
	}
	return err
}

// writeRecord writes what change makes of the directory's record, if the own node
// is still there and the record is as we know it, and repeats that with what the
// record has become until the outcome is known. It returns nil, nil if change says
// that there is nothing to write any more.
func (p *Place) writeRecord(ctx context.Context, change func(record) (r record, due bool), with ...any) (*zk.Stat, error) {
	for {
		if !p.ours {
			return nil, errNotOurs
		}
		r, due := change(p.record)
		if !due {
			return nil, nil
		}
		res, err := p.life.Multi(ctx, append([]any{
			&zk.CheckVersionRequest{Path: p.path(), Version: -1},
			&zk.SetDataRequest{Path: p.q.path, Data: r.encode(), Version: p.written.Version}}, with...)...)
		switch {
		case err == nil && res[1].Stat.Czxid != p.czxid:
			return nil, errPlaceTaken // in a directory made anew
		case err == nil:
			p.record, p.written = r, res[1].Stat
			return res[1].Stat, nil
		case errors.Is(err, zk.ErrBadVersion):
			if err := p.readRecord(ctx); err != nil {
				return nil, err
			}
			if p.ours && p.record == r { // it was us, and the answer was lost, or another who wanted the same
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

// announceHold tells the others, before the lock is used, that it is held, and with
// a lock delay, what is to happen if this holder dies. If ctx ends first, that goes
// on, since a request that has been made may yet be carried out: leave waits for it.
func (p *Place) announceHold(ctx context.Context) error {
	told := make(chan struct{})
	p.telling = told
	var err error
	go func() { // ends with the answer or the life
		defer close(told)
		err = p.announce(context.WithoutCancel(ctx))
	}()
	select {
	case <-told:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Place) announce(ctx context.Context) error {
	var keep []any
	if p.delays() && p.record.Holder < 0 {
		keep = []any{&zk.CreateRequest{Path: p.keeper(), Flags: zk.FlagPersistent}}
	}
	announce := func(r record) (record, bool) {
		if p.q.recipe.Announces {
			r.Leader = p.node.Seq
		}
		if p.delays() {
			r.Holder, r.Delay, r.Died, r.Since = p.node.Seq, p.q.settings.LockDelay, false, 0
		}
		return r, true
	}
	_, err := p.writeRecord(ctx, announce, keep...)
	if errors.Is(err, zk.ErrNodeExists) { // a copy from another directory
		_, err = p.writeRecord(ctx, announce)
	}
	p.announced, p.announcing = err == nil, false
	return err
}

func unknownOutcome(err error) bool { return errors.Is(err, session.ErrOutcomeUnknown) }
