package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// MaxValue is how many bytes of a user's may go into a node. Servers take requests
// of up to 1 MiB; values are written in base 64, and the rest is for the path, the
// owner's name and the access list.
const MaxValue = 750 << 10

// CheckValue returns an error that matches ErrInvalid if v is too large.
func CheckValue(v []byte) error {
	if len(v) > MaxValue {
		return fmt.Errorf("%w: a value of %d bytes: a node can take %d", recipes.ErrInvalid, len(v), MaxValue)
	}
	return nil
}

// Publish changes the value in the node of g, a grant of this package. It is
// written only if the node is still there, which is to say, while nobody else can
// hold. Writes come one after the other. op is the operation's name in errors.
func Publish(ctx context.Context, g *recipes.Grant, op string, value []byte) error {
	h, ok := recipes.HoldOf(g).(*hold)
	if !ok {
		return Fail(op, g.Path(), recipes.ErrInvalid)
	}
	t := h.p.ticket
	t.Value = value
	return h.data.WriteFor(ctx, g, op, t.encode())
}

// A Writer writes the data of one node, of which it is the only writer but for
// operators.
type Writer struct {
	life    *session.Life
	path    string
	own     func(*zk.Stat) bool // whether a stat is of the node, and not of another that has its name now
	version chan int32          // the version that the node has, as far as is known; taken while writing
}

// NewWriter returns the writer of a node that has the given version.
func NewWriter(life *session.Life, path string, version int32, own func(*zk.Stat) bool) *Writer {
	w := &Writer{life: life, path: path, own: own, version: make(chan int32, 1)}
	w.version <- version
	return w
}

// WriteFor replaces the data of the node that stands for g, while g lasts. The
// error is in the words of the contract: if the node is gone, so is the grant.
func (w *Writer) WriteFor(ctx context.Context, g *recipes.Grant, op string, data []byte) error {
	if err := g.Err(); err != nil {
		return err
	}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	err := w.write(g.Context(bounded), data)
	if err == nil {
		return nil
	}
	if errors.Is(err, zk.ErrNoNode) {
		if err := g.Verify(ctx); err != nil { // this revokes it
			return err
		}
		err = recipes.ErrNodeDeleted
	}
	if ended := g.Err(); ended != nil {
		return ended
	}
	return Fail(op, g.Path(), err)
}

// Mark returns the version of the node's data, which it makes another than that of a
// node that was just created: so a node that another has made under the same name is
// not taken for it. data is what is in it as long as it has not been written to.
func (w *Writer) Mark(ctx context.Context, data []byte) (int32, error) {
	var version int32
	select {
	case version = <-w.version:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	defer func() { w.version <- version }()
	for version == 0 {
		res, err := w.life.Multi(ctx, &zk.SetDataRequest{Path: w.path, Data: data, Version: 0})
		switch {
		case err == nil && !w.own(res[0].Stat): // what is in another's node matters to people only
			return 0, zk.ErrNoNode
		case err == nil:
			version = res[0].Stat.Version
		case errors.Is(err, zk.ErrBadVersion): // it was us, and the answer was lost, or it was written to
			stat, err := w.life.Exists(ctx, w.path)
			if err != nil {
				return 0, err
			}
			if stat == nil || !w.own(stat) {
				return 0, zk.ErrNoNode
			}
			version = stat.Version
		case unknownOutcome(err) && ctx.Err() == nil && w.life.Err() == nil:
		default:
			return 0, err
		}
	}
	return version, nil
}

// Reread finds out the version anew, after somebody else has written to the node.
func (w *Writer) Reread(ctx context.Context) error {
	var version int32
	select {
	case version = <-w.version:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { w.version <- version }()
	stat, err := w.life.Exists(ctx, w.path)
	if err != nil {
		return err
	}
	if stat == nil || !w.own(stat) {
		return zk.ErrNoNode
	}
	version = stat.Version
	return nil
}

// write repeats itself until the outcome is known, or ctx ends or the life does.
// Each attempt names the version that it replaces, so one that was given up can't
// come in late and undo a newer one. Nor does it get into another's node, unless
// neither that nor ours has ever been written to.
func (w *Writer) write(ctx context.Context, data []byte) error {
	var version int32
	select {
	case version = <-w.version:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { w.version <- version }()
	unsure := false
	for {
		res, err := w.life.Multi(ctx, &zk.SetDataRequest{Path: w.path, Data: data, Version: version})
		switch {
		case err == nil && !w.own(res[0].Stat):
			return zk.ErrNoNode
		case err == nil:
			version = res[0].Stat.Version
			return nil
		case errors.Is(err, zk.ErrBadVersion):
			there, stat, err := w.life.Get(ctx, w.path)
			if err != nil {
				return err
			}
			if !w.own(stat) {
				return zk.ErrNoNode
			}
			version = stat.Version
			if unsure && bytes.Equal(there, data) { // it was us: the answer was lost
				return nil
			}
		case unknownOutcome(err) && ctx.Err() == nil && w.life.Err() == nil:
			unsure = true
		default:
			return err
		}
	}
}
