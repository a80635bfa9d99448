// Package member has what groups and double barriers share: a directory with one
// ephemeral node for each member, each held as a lock is held, by our own clock.
package member

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// ErrLost: the member's node is gone although its session lives.
var ErrLost = fmt.Errorf("%w: the member's node is gone", recipes.ErrNodeDeleted)

var keyword = queue.Keyword{Text: "member-", Kind: "member"}

// foreign are the contenders of other recipes.
var foreign = []queue.Keyword{
	{Text: "lock-"}, {Text: "__lock__"}, {Text: "__READ__"}, {Text: "__WRIT__"}, {Text: "candidate-"}, {Text: "latch-"}, {Text: "lease-"},
}

// A Dir is a directory of members. It is safe for concurrent use.
type Dir struct {
	Sess     *session.Session
	Path     string
	Settings recipes.Settings
	Record   Record // of a directory that is made
}

// New checks its arguments. Nothing is sent.
func New(s *session.Session, path string, record Record, opts []recipes.Option) (*Dir, error) {
	bad := func(err error) (*Dir, error) {
		return nil, fmt.Errorf("lockkeeper: %s: %w", record.Recipe, err)
	}
	set, err := recipes.NewSettings(opts, nil)
	switch {
	case err != nil:
		return bad(err)
	case s == nil:
		return bad(fmt.Errorf("%w: the session is nil", recipes.ErrInvalid))
	case set.Reentrant || set.LockDelay > 0:
		return bad(fmt.Errorf("%w: Reentrant and LockDelay are for locks", recipes.ErrInvalid))
	}
	if err := queue.CheckPath(path); err != nil {
		return bad(err)
	}
	return &Dir{Sess: s, Path: path, Settings: set, Record: record}, nil
}

// Check reads a directory's data, and makes sure that the path is ours to use.
func (d *Dir) Check(data []byte, czxid int64) (Record, error) {
	r, ours := parseRecord(data, czxid)
	switch {
	case !ours:
		return r, fmt.Errorf("%w: somebody else's data is there", recipes.ErrConflict)
	case r.Recipe != d.Record.Recipe:
		return r, fmt.Errorf("%w: its recipe is %s", recipes.ErrConflict, r.Recipe)
	case r.Size != d.Record.Size:
		return r, fmt.Errorf("%w: its size is %d, not %d", recipes.ErrConflict, r.Size, d.Record.Size)
	}
	return r, nil
}

// A Member is a node in the directory and what stands behind its grant.
type Member struct {
	Seq int64
	Own *zk.Stat
	// Parent and ParentStat are the directory's, read after the node was made.
	Parent     []byte
	ParentStat *zk.Stat
	Data       *queue.Writer

	dir    *Dir
	life   *session.Life
	path   string
	ticket Ticket
	held   *session.Hold
	lost   chan struct{} // closed when the hold is lost

	mu     sync.Mutex
	cause  error // set before revoke was known
	gone   bool
	revoke func(cause error, gone bool) bool
}

const tries = 16 // that a directory may vanish between our making it and our use of it

// Join makes a member's node, and holds it. If it fails, it leaves nothing behind.
func (d *Dir) Join(ctx context.Context, life *session.Life, value []byte) (*Member, error) {
	for range tries {
		stat, err := d.make(ctx, life)
		if err != nil {
			return nil, err
		}
		t := Ticket{ID: rand.Text(), Owner: d.Settings.Owner, Value: value}
		made, err := life.CreateSequential(ctx, d.Path+"/"+queue.Prefix(stat.Czxid, keyword.Text), t.Encode())
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m, err := d.settle(ctx, life, made, stat.Czxid)
		if err == nil {
			m.ticket = t
			return m, nil
		}
		life.Remove(made.Path, nil, func(error) {})
		if !errors.Is(err, ErrLost) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w, %d times in a row", ErrLost, tries)
}

// make reads the directory, or makes it, and claims one that somebody made empty.
func (d *Dir) make(ctx context.Context, life *session.Life) (*zk.Stat, error) {
	for range tries {
		data, stat, err := life.Get(ctx, d.Path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			if err := life.EnsureContainer(ctx, d.Path, d.Record.Encode()); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		case len(data) == 0:
			names, _, err := life.Children(ctx, d.Path)
			if err != nil && !errors.Is(err, zk.ErrNoNode) {
				return nil, err
			}
			for _, n := range names {
				if _, other := queue.Parse(n, foreign); other {
					return nil, recipes.ErrConflict
				}
			}
			_, err = life.Multi(ctx, &zk.SetDataRequest{Path: d.Path, Data: d.Record.Encode(), Version: stat.Version})
			if err != nil && !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, session.ErrOutcomeUnknown) {
				return nil, err
			}
		default:
			r, err := d.Check(data, stat.Czxid)
			if err != nil && r.Recipe == d.Record.Recipe && stat.NumChildren == 0 {
				// Nobody is there who could mind another size.
				_, derr := life.Multi(ctx, &zk.DeleteRequest{Path: d.Path, Version: stat.Version})
				if derr == nil || errors.Is(derr, zk.ErrNoNode) {
					continue
				}
			}
			return stat, err
		}
	}
	return nil, fmt.Errorf("%w, %d times in a row", ErrLost, tries)
}

// settle takes in what was made, and holds it.
func (d *Dir) settle(ctx context.Context, life *session.Life, made *session.Created, czxid int64) (*Member, error) {
	n, good := queue.Parse(strings.TrimPrefix(made.Path, d.Path+"/"), []queue.Keyword{keyword})
	switch {
	case !good:
		return nil, fmt.Errorf("the server named a member %q", made.Path)
	case made.ParentStat.Czxid != czxid:
		return nil, ErrLost // in a directory that was made anew
	case n.Seq >= queue.SeqLimit:
		return nil, recipes.ErrExhausted
	}
	m := &Member{
		Seq: n.Seq, Own: made.Stat, Parent: made.Parent, ParentStat: made.ParentStat,
		dir: d, life: life, path: made.Path, lost: make(chan struct{}),
	}
	m.Data = queue.NewWriter(life, made.Path, made.Stat.Version, m.isOwn)
	var err error
	m.held, err = life.Hold(ctx, made.Path, made.Stat.Czxid, nil, m.lose)
	if errors.Is(err, zk.ErrNoNode) {
		err = ErrLost
	}
	if err == nil && ctx.Err() != nil {
		m.held.Drop()
		err = context.Cause(ctx)
	}
	return m, err
}

func (m *Member) isOwn(stat *zk.Stat) bool { return stat.Czxid == m.Own.Czxid }

// Grant makes the grant of a member. It is called once.
func (m *Member) Grant() *recipes.Grant {
	g, revoke := recipes.NewGrant(recipes.Spec{
		Realm:    m.dir.Sess.Realm(),
		Path:     m.dir.Path,
		Mode:     keyword.Kind,
		Token:    recipes.Token(m.Own.Czxid),
		Settings: m.dir.Settings,
		Hold:     m,
	})
	m.mu.Lock()
	m.revoke = revoke
	cause, gone := m.cause, m.gone
	m.mu.Unlock()
	if cause != nil {
		revoke(cause, gone)
	}
	return g
}

// Leave removes the node of a member that has no grant.
func (m *Member) Leave() { m.GiveUp(nil, func(error) {}) }

// Lost is closed when the hold is lost, and LostTo says why.
func (m *Member) Lost() <-chan struct{} { return m.lost }

func (m *Member) LostTo() error {
	cause, _ := m.held.Lost()
	return cause
}

// lose is called by the session when the hold is lost, or by Remaining.
func (m *Member) lose(cause error, gone bool) {
	cause = queue.Translate(cause)
	m.mu.Lock()
	revoke := m.revoke
	if m.cause == nil {
		m.cause, m.gone = cause, gone
		close(m.lost)
	}
	m.mu.Unlock()
	if revoke != nil {
		revoke(cause, gone)
	}
}

// Remaining implements recipes.Hold.
func (m *Member) Remaining() time.Duration {
	left := m.held.Remaining()
	if left <= 0 {
		if cause, gone := m.held.Lost(); cause != nil {
			m.lose(cause, gone)
		}
	}
	return left
}

// Verify implements recipes.Hold.
func (m *Member) Verify(ctx context.Context) error {
	err := m.held.Verify(ctx)
	var se *session.Error
	if errors.As(err, &se) {
		return queue.Translate(se.Reason)
	}
	return err
}

// GiveUp implements recipes.Hold.
func (m *Member) GiveUp(_ error, done func(error)) {
	m.held.GiveUp(nil, func(err error) {
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			m.dir.Settings.Logger.Warn("a member's node can't be removed before its session ends", "node", m.path, "error", err)
		}
		done(queue.Removed(err))
	})
}

// Life and Node are for package guard.
func (m *Member) Life() *session.Life { return m.life }

// Node returns the path of the member's node, below the chroot.
func (m *Member) Node() string { return m.path }

// Encode returns the data of the member's node with another value.
func (m *Member) Encode(value []byte) []byte {
	t := m.ticket
	t.Value = value
	return t.Encode()
}

// Sequence returns the number of a member's node.
func Sequence(name string) (int64, bool) {
	n, ok := queue.Parse(name, []queue.Keyword{keyword})
	return n.Seq, ok
}

// Again reports whether an attempt that failed with err is to be made again, with
// the next life or in the same.
func (d *Dir) Again(ctx context.Context, life *session.Life, err error) bool {
	lost := life.Err() != nil && ctx.Err() == nil || errors.Is(err, ErrLost) || errors.Is(err, session.ErrSuspended)
	return lost && !d.Settings.FailOnLoss && !errors.Is(life.Err(), session.ErrClosed)
}
