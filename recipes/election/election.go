// Package election elects one leader among candidates, on ZooKeeper: in order of
// arrival, with fencing tokens, and revoked by our own clock before the ensemble
// can let another lead.
//
//	e, err := election.New(sess, "/leaders/scheduler", election.Value([]byte(addr)))
//	err = e.Run(ctx, func(ctx context.Context, t *election.Term) error {
//		return schedule(ctx, t.Token()) // ctx ends when the term does
//	})
//
// It is the queue of package mutex (the leader election of the ZooKeeper recipes,
// in which each candidate watches only the one before it), with a leader that
// says so where everybody can read it: who leads, since when, and a value, such
// as an address. The promise is that of every lock here: see package recipes.
package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// MaxValue is how many bytes a value may have: what a server takes in one request
// by default (1 MiB, with the rest of the request), in the base 64 in which it is
// written. A server with a smaller jute.maxbuffer breaks the connection instead of
// answering, each time.
const MaxValue = queue.MaxValue

// ErrNoLeader: at this moment nobody leads.
var ErrNoLeader = errors.New("nobody leads")

// An Election is one office at one path. It holds nothing itself: it may be
// shared by any number of goroutines, each Campaign is a candidate of its own, and
// it goes on working when the session behind it is lost and replaced.
type Election struct {
	q     *queue.Queue
	sess  *session.Session
	set   recipes.Settings
	value []byte
}

var candidate = queue.Keyword{Text: "candidate-", Kind: "candidate", Alone: true}

var recipe = queue.Recipe{
	Name:     "election",
	Keywords: []queue.Keyword{candidate},
	Foreign: []queue.Keyword{
		{Text: "lock-"}, {Text: "__lock__"}, {Text: "__READ__"}, {Text: "__WRIT__"}, // locks, and Curator's LeaderSelector
		{Text: "latch-"}, // Curator's LeaderLatch
	},
	Blocks:    func(other, self queue.Node) bool { return true },
	Announces: true,
}

type value []byte

// Value is what a candidate of Run publishes when it is elected: an address, say.
// At most MaxValue bytes.
func Value(v []byte) recipes.Option { return recipes.Extension(value(v)) }

// New returns the election at path, which is taken below the session's chroot. The
// path's node is made when it is first needed, as a container, and vanishes by
// itself when it is no longer used. New sends nothing; a nil session, a bad path,
// option or value is an error that matches recipes.ErrInvalid. So is
// recipes.Reentrant: nobody is elected twice at a time.
func New(s *session.Session, path string, opts ...recipes.Option) (*Election, error) {
	e := &Election{sess: s}
	var err error
	e.set, err = recipes.NewSettings(opts, func(v any) error {
		val, ok := v.(value)
		if !ok {
			return fmt.Errorf("%w: option %T is not for an election", recipes.ErrInvalid, v)
		}
		e.value = append([]byte(nil), val...)
		return queue.CheckValue(val)
	})
	if err != nil {
		return nil, fmt.Errorf("lockkeeper: election: %w", err)
	}
	if e.set.Reentrant {
		return nil, fmt.Errorf("lockkeeper: election: %w: Reentrant is not for an election", recipes.ErrInvalid)
	}
	e.q, err = queue.New(s, path, recipe, e.set)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Campaign waits until it is elected, in order of arrival, and returns the term.
// The value (at most MaxValue bytes; it may be empty) is published with it. ctx
// bounds the wait, never the term: once Campaign has returned, the term lasts until
// Resign or revocation. If ctx has ended, on entry or when the turn comes, Campaign
// fails. One that fails leaves nothing behind; where the connection is down at that
// moment, that is seen to in the background.
//
// If the session is lost while it waits, Campaign queues again, at the tail, unless
// the option recipes.FailOnLoss was given; and if a leader resigns in favour of
// somebody further behind, so do those who stand before that one: see
// [Term.ResignTo]. It is never in line twice.
//
// Where nobody is ahead it takes three round trips, two of them committed by the
// quorum: the create, and a write by which the observers learn of it. Candidates
// must be allowed to write the data of the path's node.
//
// Errors, inside a *recipes.Error: context.Cause(ctx); recipes.ErrInvalid (the
// value is too large: nothing was sent), ErrDeadlock (ctx comes from a live term of
// this election), ErrConflict, ErrPermission, ErrExhausted, ErrSessionClosed.
func (e *Election) Campaign(ctx context.Context, value []byte) (*Term, error) {
	return e.campaign(ctx, "campaign", value, false)
}

// TryCampaign returns the term if there is neither a leader nor a candidate, and
// recipes.ErrBusy otherwise, without writing anything. It blocks only for as long
// as the ensemble takes to answer, which ctx bounds.
func (e *Election) TryCampaign(ctx context.Context, value []byte) (*Term, error) {
	return e.campaign(ctx, "trycampaign", value, true)
}

func (e *Election) campaign(ctx context.Context, op string, value []byte, try bool) (*Term, error) {
	if err := queue.CheckValue(value); err != nil {
		return nil, queue.Fail(op, e.Path(), err)
	}
	value = append([]byte(nil), value...) // it may be sent again later
	g, err := e.q.Bid(ctx, queue.Bid{Keyword: candidate, Op: op, Value: value, Try: try})
	if err != nil {
		return nil, err
	}
	return &Term{Grant: g, q: e.q}, nil
}

// Contenders lists the leader and the candidates in queue order, with one read for
// each of them. It is true of one moment only. The first is shown as holding, also
// in the moment before it has announced itself and during a recipes.LockDelay: for
// who leads, ask [Election.Leader].
func (e *Election) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return e.q.Contenders(ctx)
}

// Path returns the election's path.
func (e *Election) Path() string { return e.q.Path() }
