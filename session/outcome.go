package session

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// CreateSequential makes an ephemeral sequential node and returns its path:
// prefix, and ten digits. data must be unique, since the node is known by it if
// the answer is lost: then the node is looked for, however often the connection
// breaks, and adopted, or made again once it is certain that it is not there. If
// ctx ends first, the error matches its cause, and the node is removed in the
// background, also if it appears later. So a failed call leaves nothing behind
// that outlives the session, and a successful one leaves one node.
func (l *Life) CreateSequential(ctx context.Context, prefix string, data []byte) (string, error) {
	job := &creation{l: l, prefix: prefix, data: data, made: make(chan struct{})}
	if ctx.Err() != nil {
		return "", &Error{Op: "create", Path: prefix, Reason: context.Cause(ctx)}
	}
	if !l.spawn(job.run) {
		return "", &Error{Op: "create", Path: prefix, Reason: l.Err()}
	}
	var err error
	select {
	case <-job.made:
		return job.path, job.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-l.ctx.Done():
		err = l.Err()
	}
	job.abandon()
	return "", &Error{Op: "create", Path: prefix, Reason: err, LastErr: job.lastErr()}
}

// A creation goes on until it is certain what became of it, whether or not
// anybody still waits for it.
type creation struct {
	l      *Life
	prefix string
	data   []byte

	made chan struct{} // closed when path or err is set, for the caller
	path string
	err  error

	mu        sync.Mutex
	settled   bool // made is closed
	abandoned bool // nobody wants the node
	last      error
}

func (j *creation) abandon() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.abandoned = true
	if j.path != "" { // made at the very moment when nobody wanted it any more
		j.l.Remove(j.path, nil, func(error) {})
	}
}

func (j *creation) isAbandoned() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.abandoned
}

func (j *creation) lastErr() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

func (j *creation) failed(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = err
}

// deliver hands the node to the caller, or removes it if there is none.
func (j *creation) deliver(path string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.settled {
		j.settled, j.path, j.err = true, path, err
		close(j.made)
	}
	if j.abandoned && path != "" {
		j.l.Remove(path, nil, func(error) {})
	}
}

// despair tells the caller that the outcome can't be found out at present. The
// search goes on without him.
func (j *creation) despair(err error) {
	j.deliver("", &Error{Op: "create", Path: j.prefix, Reason: err, LastErr: ErrOutcomeUnknown})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.abandoned = true
}

func (j *creation) run() {
	l := j.l
	pause := newPause()
	for {
		if l.waitForLink(l.ctx) != nil {
			j.deliver("", &Error{Op: "create", Path: j.prefix, Reason: l.Err(), LastErr: j.lastErr()})
			return
		}
		if j.isAbandoned() {
			j.deliver("", context.Canceled)
			return
		}
		sent := time.Now()
		path, err := l.conn.Create(l.Full(j.prefix), j.data, zk.FlagEphemeralSequential, l.s.cfg.ACL)
		switch classify(err) {
		case carriedOut:
			l.committed(sent)
			j.deliver(l.cut(path), nil)
			return
		case answered:
			j.deliver("", &Error{Op: "create", Path: j.prefix, Reason: err})
			return
		case sessionOver:
			l.end(ErrExpired)
		case unknown:
			j.failed(err)
			if path := j.find(); path != "" {
				j.deliver(path, nil)
				return
			}
		}
		pause.wait(l.ctx, l)
	}
}

// find looks for the node until it is certain whether it is there; "" if it is
// not, or if the life is over.
func (j *creation) find() string {
	pause := newPause()
	for {
		path, err := j.look()
		if err == nil || j.l.Err() != nil {
			return path
		}
		if errors.Is(err, zk.ErrNoAuth) {
			j.despair(zk.ErrNoAuth)
		}
		j.failed(err)
		pause.wait(j.l.ctx, j.l)
	}
}

// look looks for the node among the children: after a sync, so that a server
// that lags can't hide it, and on the connection on which the create would go
// out again. It returns "" if the node is certainly not there.
func (j *creation) look() (string, error) {
	l := j.l
	dir := parentOf(j.prefix)
	base := j.prefix[len(dir)+1:]
	if _, err := repeat(l.ctx, l, "sync", dir, func(c *zk.Conn) (string, error) { return c.Sync(l.Full(dir)) }); err != nil {
		return "", err
	}
	names, _, err := l.Children(l.ctx, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, base) {
			continue
		}
		data, stat, err := l.Get(l.ctx, dir+"/"+name)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			// somebody else's, gone by now; ours would have no reason to go
		case errors.Is(err, zk.ErrNoAuth):
			// not ours: we may read what we make
		case err != nil:
			return "", err
		case stat.EphemeralOwner == l.id && bytes.Equal(data, j.data):
			return dir + "/" + name, nil
		}
	}
	return "", nil
}

// Remove deletes a node in the background, repeating it until the server says
// that the node is gone or the life is over, and then calls done. The operations
// in with are carried out in the same transaction; where the server refuses
// those, the node is deleted alone. An error means that the server refused to
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
	_, err := repeat(l.ctx, l, "delete", path, func(c *zk.Conn) (struct{}, error) {
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
	if errors.Is(err, zk.ErrNoNode) || l.Err() != nil {
		return nil
	}
	return err
}

// refusedFirst reports whether a transaction failed for its first operation.
func refusedFirst(res []zk.MultiResponse) bool { return len(res) > 0 && res[0].Error != nil }
