package fair

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes/internal/queue"
	"github.com/lockkeeper/lockkeeper/session"
)

// A marker is the node that stands in a flow's line for one contender in the lock's
// queue. It has the unique name of the contender's place before the gate. Only who
// stands there can make one: so nobody but the first before the gate adds to the line,
// whatever was sent late. And it does so only while the flow's weight is as it knows
// it, or was a moment ago.
type marker struct {
	life   *session.Life
	path   string
	checks []any
	made   chan struct{} // closed when it is made, or can't be
	err    error         // read after made
	once   sync.Once
	gone   chan struct{} // closed when it is gone, after remove
}

// mark begins to make a marker. That goes on whatever becomes of the contender, since
// what was sent can't be taken back: remove waits for it.
// With anyWeight it is made whatever has become of the flow's weight.
func (g *gate) mark(life *session.Life, at *queue.Place, anyWeight bool) *marker {
	checks := at.Checks()
	if anyWeight {
		checks = checks[:1]
	}
	m := &marker{life: life, path: g.line + "/" + at.Name(), checks: checks, made: make(chan struct{}), gone: make(chan struct{})}
	go func() { // ends with the answer or the life
		defer close(m.made)
		m.err = m.make(g.line)
	}()
	return m
}

// markTries bounds how often the line may vanish between our making it and our use of
// it.
const markTries = 16

// errOutdated: the weight of the flow may have changed.
var errOutdated = errors.New("the flow's weight has changed")

func (m *marker) make(line string) error {
	ctx := context.Background() // the life ends the calls
	ops := append(m.checks, &zk.CreateRequest{Path: m.path, Flags: zk.FlagEphemeral})
	for tries := 0; ; {
		res, err := m.life.Multi(ctx, ops...)
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists): // by an earlier try
			return nil
		case errors.Is(err, session.ErrOutcomeUnknown) && m.life.Err() == nil:
		case refused(res, 0):
			return queue.ErrPlaceLost
		case refused(res, 1) && len(m.checks) == 2:
			return errOutdated
		case errors.Is(err, zk.ErrNoNode) && tries < markTries:
			if err := m.life.EnsureContainer(ctx, line, nil); err != nil {
				return err
			}
			tries++
		default:
			return err
		}
	}
}

// refused reports whether a transaction failed for its i-th operation.
func refused(res []zk.MultiResponse, i int) bool {
	for _, r := range res[:min(i, len(res))] {
		if r.Error != nil {
			return false
		}
	}
	return i < len(res) && res[i].Error != nil
}

// remove takes it away, in the background, until that is certain. There may be none.
func (m *marker) remove() {
	if m == nil {
		return
	}
	m.once.Do(func() {
		go func() { // ends with the answer or the life
			<-m.made
			m.life.Remove(m.path, nil, func(error) { close(m.gone) })
		}()
	})
}

// waitGone waits until a marker is gone that is to be removed.
func (m *marker) waitGone() {
	if m != nil {
		<-m.gone
	}
}
