package session

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// Remove deletes a node in the background, repeating it until the server says
// that the node is gone or the life is over, and then calls done. The operations
// in with are carried out in the same transaction; where the server refuses
// those, the node is deleted alone. The error is zk.ErrNoNode if it is certain that
// somebody else had removed the node. Any other means that the server refused to
// delete it, so that it stays until the session ends.
func (l *Life) Remove(path string, with []any, done func(error)) {
	full := make([]any, 0, len(with)+1)
	full = append(full, &zk.DeleteRequest{Path: l.Full(path), Version: -1})
	for _, op := range with {
		op, err := l.below(op)
		if err != nil {
			done(err)
			return
		}
		full = append(full, op)
	}
	if !l.spawn(func() { done(l.remove(path, full)) }) {
		done(nil) // the node goes with its session
	}
}

func (l *Life) remove(path string, ops []any) error {
	tries := 0
	_, err := repeat(l.ctx, l, "delete", path, func(c *zk.Conn) (struct{}, error) {
		tries++
		if len(ops) > 1 {
			res, err := l.commit(c, ops...)
			if classify(err) != answered || refusedFirst(res) {
				return struct{}{}, err
			}
			ops = ops[:1]
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

// refusedFirst reports whether a transaction failed for its first operation.
func refusedFirst(res []zk.MultiResponse) bool { return len(res) > 0 && res[0].Error != nil }
