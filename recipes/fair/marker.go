package fair

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/session"
)

// A marker is the node that stands in a flow's line for one contender in the lock's
// queue. It has the unique name of the contender's place before the gate.
type marker struct {
	life *session.Life
	path string
	made chan struct{} // closed when it is made, or can't be
	err  error         // read after made
}

// mark begins to make a marker. That goes on whatever becomes of the contender, since
// what was sent can't be taken back: remove waits for it.
func (g *gate) mark(life *session.Life, name string) *marker {
	m := &marker{life: life, path: g.line + "/" + name, made: make(chan struct{})}
	go func() { // ends with the answer or the life
		defer close(m.made)
		m.err = m.make(g.line)
	}()
	return m
}

// markTries bounds how often the line may vanish between our making it and our use of
// it.
const markTries = 16

func (m *marker) make(line string) error {
	ctx := context.Background() // the life ends the calls
	for tries := 0; ; {
		_, err := m.life.Multi(ctx, &zk.CreateRequest{Path: m.path, Flags: zk.FlagEphemeral})
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists): // by an earlier try
			return nil
		case errors.Is(err, zk.ErrNoNode) && tries < markTries:
			if err := m.life.EnsureContainer(ctx, line, nil); err != nil {
				return err
			}
			tries++
		case errors.Is(err, session.ErrOutcomeUnknown) && m.life.Err() == nil:
		default:
			return err
		}
	}
}

// wait waits until the marker is there.
func (m *marker) wait(ctx context.Context) error {
	select {
	case <-m.made:
		return m.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// remove takes it away, in the background, until that is certain. There may be none.
func (m *marker) remove() {
	if m == nil {
		return
	}
	go func() { // ends with the answer or the life
		<-m.made
		m.life.Remove(m.path, nil, func(error) {})
	}()
}
