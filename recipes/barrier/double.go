package barrier

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/member"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// A Double barrier lets members in by rounds: as soon as size of them have come,
// these go in together, and the next ones are let in when all of them have left. It
// may be shared by any number of goroutines: each Enter is a member of its own.
type Double struct {
	dir  *member.Dir
	size int64
}

// MaxSize is the largest size of a round.
const MaxSize = 1 << 16

// NewDouble returns the double barrier at path, for rounds of size members (1 to
// MaxSize), which is taken below the session's chroot. The path's node is made by
// the first who enters, as a container, which vanishes by itself when it is no longer
// used. The size is that of the first who enters while nobody is there. NewDouble sends nothing; a nil session, a bad path,
// size or option (recipes.Reentrant and LockDelay are for locks) is an error that
// matches recipes.ErrInvalid.
func NewDouble(s *session.Session, path string, size int, opts ...recipes.Option) (*Double, error) {
	if size < 1 || size > MaxSize {
		return nil, fmt.Errorf("lockkeeper: barrier: %w: size %d: want 1 to %d", recipes.ErrInvalid, size, MaxSize)
	}
	d, err := member.New(s, path, member.NewRecord("barrier", int64(size)), opts)
	if err != nil {
		return nil, err
	}
	return &Double{d, int64(size)}, nil
}

// A Pass is the time for which a member is inside: a grant, which ends by Leave,
// by Release (which is leaving without waiting for the others) or by revocation.
// Its token names it and rises, but fences nothing, since there are others inside.
// All methods are safe for concurrent use.
type Pass struct {
	*recipes.Grant
	d     *Double
	round round
}

// A round is the members with numbers after from, up to open, in one directory.
type round struct{ dir, from, open int64 }

func (r round) has(name string) bool {
	seq, ok := member.Sequence(name)
	return ok && seq > r.from && seq <= r.open
}

// Enter waits until size members, this one with them, have come, and all those of
// the round before have left or died, and goes in with them. Who comes first goes in
// first; who comes when a round is full waits for the next. A member that gives up
// or dies before its round is full does not count. ctx bounds the wait, never the
// pass: if it has ended, on entry or when the turn comes, Enter fails. One that
// fails before its round was let in leaves nothing behind; one that fails at that
// very moment counts as a member that has left.
//
// If the session is lost while it waits, Enter comes again, as the last, unless the
// option recipes.FailOnLoss was given.
//
// It takes three round trips, one of them committed by the quorum, and three more,
// one committed, for the last of a round. A member that waits watches the directory's data,
// which change once for each round; only the last ones to come list the names, once
// when they come, and where the round before has not been left, once for each of
// its members at most.
//
// Errors, inside a *recipes.Error: context.Cause(ctx); recipes.ErrConflict (others
// use another size, or another recipe), ErrDeadlock (ctx comes from a live pass of
// this barrier), ErrPermission, ErrExhausted, ErrSessionClosed.
func (d *Double) Enter(ctx context.Context) (*Pass, error) {
	const op = "enter"
	if ctx.Err() != nil {
		return nil, queue.Fail(op, d.dir.Path, context.Cause(ctx))
	}
	if _, err := recipes.Nested(ctx, d.dir.Settings, d.dir.Sess.Realm(), d.dir.Path); err != nil {
		return nil, queue.Fail(op, d.dir.Path, err)
	}
	for {
		life, err := d.dir.Sess.Life(ctx)
		if err != nil {
			return nil, queue.Fail(op, d.dir.Path, err)
		}
		p, err := d.enter(ctx, life)
		if err == nil {
			return p, nil
		}
		if !d.dir.Again(ctx, life, err) {
			return nil, queue.Fail(op, d.dir.Path, err)
		}
	}
}

func (d *Double) enter(ctx context.Context, life *session.Life) (*Pass, error) {
	m, err := d.dir.Join(ctx, life, nil)
	if err != nil {
		return nil, err
	}
	r, err := d.await(ctx, life, m)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		m.Leave()
		return nil, err
	}
	return &Pass{m.Grant(), d, r}, nil
}

// await returns when the round of m is let in.
//
// Whoever, when it came, saw that there are enough is an opener: it writes into the
// directory's data up to which number they go in, as soon as the round before has
// left. If there are enough at some later moment, the last of them to come is an
// opener, since those before it were there when it came; so it does not matter which
// openers die.
func (d *Double) await(ctx context.Context, life *session.Life, m *member.Member) (round, error) {
	opener := int64(m.ParentStat.NumChildren) >= d.size
	first := true
	for {
		w, err := life.Watch(ctx, d.dir.Path)
		if errors.Is(err, zk.ErrNoNode) || err == nil && w.Stat.Czxid != m.ParentStat.Czxid {
			return round{}, member.ErrLost
		}
		if err != nil {
			return round{}, err
		}
		r, err := d.dir.Check(w.Data, w.Stat.Czxid)
		if err != nil {
			return round{}, err
		}
		if m.Seq <= r.Open {
			if first && w.Stat.Mzxid < m.Own.Czxid { // let in before it came
				return round{}, fmt.Errorf("%w: the counter has gone back", recipes.ErrExhausted)
			}
			return round{r.Dir, r.From, r.Open}, nil
		}
		first = false
		var leaves <-chan struct{}
		if opener {
			var again bool
			if leaves, again, err = d.open(ctx, life, m, r, w.Stat.Version); err != nil {
				return round{}, err
			}
			if again {
				continue
			}
		}
		select {
		case <-w.Fired:
		case <-leaves:
		case <-m.Lost():
			if err := life.Err(); err != nil {
				return round{}, err
			}
			if cause := m.LostTo(); !errors.Is(cause, session.ErrNodeGone) {
				return round{}, cause
			}
			return round{}, member.ErrLost
		case <-ctx.Done():
			return round{}, context.Cause(ctx)
		}
	}
}

// open lets a round in, if it is full and the one before has left. If a member of
// that one is still inside, it returns a channel that is closed when it leaves.
func (d *Double) open(ctx context.Context, life *session.Life, m *member.Member, r member.Record, version int32) (leaves <-chan struct{}, again bool, err error) {
	names, _, err := life.Children(ctx, d.dir.Path)
	if err != nil {
		return nil, false, notThere(err)
	}
	inside, waiting := split(names, r.Open)
	if fault.Is(fault.RoundTooSoon) {
		inside = ""
	}
	if int64(len(waiting)) < d.size {
		return nil, false, nil // some gave up
	}
	if inside != "" {
		w, err := life.Watch(ctx, d.dir.Path+"/"+inside)
		if errors.Is(err, zk.ErrNoNode) {
			return nil, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		return w.Fired, false, nil
	}
	r.From, r.Open = r.Open, waiting[d.size-1]
	_, err = life.Multi(ctx,
		&zk.CheckVersionRequest{Path: m.Node(), Version: -1},
		&zk.SetDataRequest{Path: d.dir.Path, Data: r.Encode(), Version: version})
	switch {
	case err == nil, errors.Is(err, zk.ErrBadVersion), errors.Is(err, session.ErrOutcomeUnknown) && ctx.Err() == nil && life.Err() == nil:
		return nil, true, nil
	}
	return nil, false, notThere(err)
}

func notThere(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return member.ErrLost
	}
	return err
}

// Leave leaves, and then waits until all others of the round have left or died.
// Leaving is carried out even if ctx is over; ctx bounds only the wait. If the pass
// had been revoked, Leave returns Err's value at once: this member did not end
// together with the others.
//
// While it waits it watches the member that entered last of those still inside. It
// lists the names when it begins and whenever that one goes: where members leave in
// no particular order, a few times, and at worst once for each of the round.
func (p *Pass) Leave(ctx context.Context) error {
	const op = "leave"
	if err := p.Release(ctx); err != nil {
		return err
	}
	for {
		life, err := p.d.dir.Sess.Life(ctx)
		if err != nil {
			return queue.Fail(op, p.Path(), err)
		}
		left, err := p.allLeft(ctx, life)
		if left {
			return nil
		}
		if lost := life.Err(); err != nil && (lost == nil || errors.Is(lost, session.ErrClosed) || ctx.Err() != nil) {
			return queue.Fail(op, p.Path(), err)
		}
	}
}

// allLeft looks whether anybody of the round is still inside; if so, it waits until
// that may have changed.
func (p *Pass) allLeft(ctx context.Context, life *session.Life) (bool, error) {
	names, stat, err := life.Children(ctx, p.d.dir.Path)
	if errors.Is(err, zk.ErrNoNode) || err == nil && stat.Czxid != p.round.dir {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	last, lastSeq := "", int64(-1)
	for _, name := range names {
		if seq, _ := member.Sequence(name); p.round.has(name) && seq > lastSeq {
			last, lastSeq = name, seq
		}
	}
	if last == "" {
		return true, nil
	}
	w, err := life.Watch(ctx, p.d.dir.Path+"/"+last)
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	select {
	case <-w.Fired:
		return fault.Is(fault.LeaveOnce), nil
	case <-life.Done():
		return false, life.Err()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// Path returns the barrier's path.
func (d *Double) Path() string { return d.dir.Path }
