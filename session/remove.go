package session

import (
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// Remove deletes a node in the background, repeating it until the server says
// that the node is gone or the life is over, and then calls done. The operations
// in with are carried out in the same transaction, but for those that the server
// refuses. The error is zk.ErrNoNode if it is certain that somebody else had removed
// the node. Any other means that the server refused to delete it, so that it stays
// until the session ends.
func (l *Life) Remove(path string, with []any, done func(error)) {
	l.giveUp(nil, path, with, done)
}

// A removal is under way: these operations delete a node, first of all.
type removal struct{ ops []any }

// giveUp is Remove for a node that h holds, if that is not nil, and does so no more.
func (l *Life) giveUp(h *Hold, path string, with []any, done func(error)) {
	full := make([]any, 0, len(with)+1)
	full = append(full, &zk.DeleteRequest{Path: l.Full(path), Version: -1})
	for _, op := range with {
		op, err := l.below(op)
		if err != nil {
			if h != nil {
				h.Drop()
			}
			done(err)
			return
		}
		full = append(full, op)
	}
	r := &removal{full}
	l.mu.Lock()
	if h != nil {
		h.removeLocked(nil, false)
	}
	over := l.ended != nil
	if !over {
		l.removals[r] = struct{}{}
		l.wg.Go(func() {
			err := l.remove(path, full)
			l.mu.Lock()
			delete(l.removals, r)
			l.mu.Unlock()
			done(err)
		})
	}
	l.mu.Unlock()
	if over {
		done(nil) // the node goes with its session
	}
}

func (l *Life) remove(path string, ops []any) error {
	tries := 0
	_, err := repeat(l.ctx, l, "delete", path, func(c *zk.Conn) (struct{}, error) {
		tries++
		for len(ops) > 1 {
			res, err := l.commit(c, ops...)
			bad := firstRefused(res)
			switch {
			case classify(err) != answered || bad == 0:
				return struct{}{}, err
			case bad < 0:
				ops = ops[:1]
			default:
				ops = slices.Delete(slices.Clone(ops), bad, bad+1)
			}
		}
		sent := time.Now()
		err := c.Delete(l.Full(path), -1)
		if err == nil {
			l.committed(sent)
		}
		return struct{}{}, err
	})
	if l.Err() != nil || errors.Is(err, zk.ErrNoNode) && tries > 1 { // it may have been us
		return nil
	}
	return err
}

// firstRefused returns for which of its operations a transaction failed; -1 if that is
// not said.
func firstRefused(res []zk.MultiResponse) int {
	return slices.IndexFunc(res, func(r zk.MultiResponse) bool { return r.Error != nil })
}
