package session

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
)

// Created is a node that [Life.CreateSequential] made.
type Created struct {
	Path string
	Stat *zk.Stat // as it was made: its owner is this session
	// Parent and ParentStat are the data and the stat of the node above, read
	// after the node was made.
	Parent     []byte
	ParentStat *zk.Stat
}

// CreateSequential makes an ephemeral sequential node, whose path is prefix and
// ten digits, and reads the node above: in one round trip, one request right
// behind the other. data must be unique, since the node is known by it if the
// answer is lost: then the node is looked for, however often the connection
// breaks, and adopted, or made again once it is certain that it is not there. If
// ctx ends first, the error matches its cause, and the node is removed in the
// background, also if it appears later. So a failed call leaves nothing behind
// that outlives the session, and a successful one leaves one node.
func (l *Life) CreateSequential(ctx context.Context, prefix string, data []byte) (*Created, error) {
	if ctx.Err() != nil {
		return nil, &Error{Op: "create", Path: prefix, Reason: context.Cause(ctx)}
	}
	j := &creation{l: l, prefix: prefix, data: data, sent: make(chan struct{}), done: make(chan struct{})}
	if !l.spawn(j.run) {
		return nil, &Error{Op: "create", Path: prefix, Reason: l.Err()}
	}
	var err error
	select {
	case <-j.done:
		return j.result()
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-l.ctx.Done():
		err = l.Err()
	}
	return nil, &Error{Op: "create", Path: prefix, Reason: err, LastErr: j.abandon()}
}

// A creation goes on until it is certain what became of it, whether or not
// anybody still waits for it.
type creation struct {
	l        *Life
	prefix   string
	data     []byte
	answered bool // the first request was, with success

	once sync.Once
	sent chan struct{} // closed when the request was first written to a connection

	done chan struct{} // closed when node or err is set
	mu   sync.Mutex
	node *Created
	err  error

	settled   bool     // done is closed
	abandoned bool     // nobody wants the node
	last      error    // what last went wrong on the way
	stat      *zk.Stat // from the answer
}

// written and answeredWith are called by the wire.
func (j *creation) written() { j.once.Do(func() { close(j.sent) }) }

func (j *creation) answeredWith(stat *zk.Stat) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stat = stat
}

// abandon says that nobody waits any more, and returns what last went wrong.
func (j *creation) abandon() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.abandoned = true
	if j.node != nil { // made at the very moment when nobody wanted it any more
		j.l.Remove(j.node.Path, nil, func(error) {})
	}
	return j.last
}

func (j *creation) isAbandoned() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.abandoned
}

func (j *creation) result() (*Created, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.node, j.err
}

// deliver hands the node to the caller, or removes it if there is none.
func (j *creation) deliver(node *Created, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.settled {
		j.settled, j.node, j.err = true, node, err
		close(j.done)
	}
	if j.abandoned && node != nil {
		j.l.Remove(node.Path, nil, func(error) {})
	}
}

func (j *creation) fail(reason error) {
	j.mu.Lock()
	last := j.last
	j.mu.Unlock()
	j.deliver(nil, &Error{Op: "create", Path: j.prefix, Reason: reason, LastErr: last})
}

// despair tells the caller that the outcome can't be found out at present. The
// search goes on without him.
func (j *creation) despair(err error) {
	j.deliver(nil, &Error{Op: "create", Path: j.prefix, Reason: err, LastErr: ErrOutcomeUnknown})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.abandoned = true
}

func (j *creation) run() {
	l := j.l
	defer l.enlist(j)()
	behind := j.readBehind()
	path, stat, err := j.make()
	if err != nil {
		var e *Error
		if errors.As(err, &e) {
			err = e.Reason
		}
		j.fail(err)
		return
	}
	node := &Created{Path: path, Stat: stat}
	if j.answered {
		// The request was the one that was read behind.
		if r := <-behind; r.err == nil {
			node.Parent, node.ParentStat = r.data, r.stat
		}
	}
	if err := j.complete(node); err != nil {
		l.Remove(path, nil, func(error) {})
		j.fail(err)
		return
	}
	j.deliver(node, nil)
}

// make has the node made, and returns its path and stat. The stat is nil where
// the server does not tell.
func (j *creation) make() (string, *zk.Stat, error) {
	l := j.l
	pause := newPause()
	for attempt := 1; ; attempt++ {
		if err := l.waitForLink(l.ctx); err != nil {
			return "", nil, err
		}
		if j.isAbandoned() {
			return "", nil, context.Canceled
		}
		sent := time.Now()
		path, err := l.conn.Create(l.Full(j.prefix), j.data, zk.FlagEphemeralSequential, l.s.cfg.ACL)
		switch classify(err) {
		case carriedOut:
			l.committed(sent)
			j.answered = attempt == 1
			j.written()
			j.mu.Lock()
			defer j.mu.Unlock()
			return l.cut(path), j.stat, nil
		case answered:
			if !isUnimplemented(err) {
				return "", nil, err
			}
			// an old server: the wire knows that by now, and leaves the request as it is
		case sessionOver:
			l.end(ErrExpired)
		case unknown:
			j.note(err)
			if fault.Is(fault.CreateBlindly) {
				break
			}
			if path, stat := j.find(); path != "" {
				return path, stat, nil
			}
		}
		pause.wait(l.ctx, l)
	}
}

type parentRead struct {
	data []byte
	stat *zk.Stat
	err  error
}

// readBehind reads the node above as soon as the request to create has been
// written: requests of one connection are carried out in order.
func (j *creation) readBehind() <-chan parentRead {
	read := make(chan parentRead, 1)
	fn := func() {
		select {
		case <-j.sent:
			data, stat, err := j.l.Get(j.l.ctx, parentOf(j.prefix))
			read <- parentRead{data, stat, err}
		case <-j.done:
			read <- parentRead{err: context.Canceled}
		}
	}
	if !j.l.spawn(fn) {
		read <- parentRead{err: j.l.Err()}
	}
	return read
}

// complete reads what is not known yet.
func (j *creation) complete(node *Created) (err error) {
	if node.Stat == nil {
		node.Stat, err = j.l.Exists(j.l.ctx, node.Path)
		if err == nil && node.Stat == nil {
			err = zk.ErrNoNode // removed by somebody in the meantime
		}
		if err != nil {
			return err
		}
	}
	if node.ParentStat == nil {
		node.Parent, node.ParentStat, err = j.l.Get(j.l.ctx, parentOf(j.prefix))
	}
	return err
}

func (j *creation) note(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = err
}

// find looks for the node until it is certain whether it is there; "" if it is
// not, or if the life is over.
func (j *creation) find() (string, *zk.Stat) {
	pause := newPause()
	for {
		path, stat, err := j.look()
		if err == nil || j.l.Err() != nil {
			return path, stat
		}
		if errors.Is(err, zk.ErrNoAuth) {
			j.despair(zk.ErrNoAuth)
		}
		j.note(err)
		pause.wait(j.l.ctx, j.l)
	}
}

// look looks for the node among the children: after a sync, so that a server
// that lags can't hide it, and on the connection on which the create would go
// out again. It returns "" if the node is certainly not there.
func (j *creation) look() (string, *zk.Stat, error) {
	l := j.l
	dir := parentOf(j.prefix)
	base := j.prefix[strings.LastIndexByte(j.prefix, '/')+1:]
	if err := l.Sync(l.ctx, dir); err != nil {
		return "", nil, err
	}
	names, _, err := l.Children(l.ctx, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, base) {
			continue
		}
		data, stat, err := l.Get(l.ctx, join(dir, name))
		switch {
		case errors.Is(err, zk.ErrNoNode):
			// somebody else's, gone by now; ours would have no reason to go
		case errors.Is(err, zk.ErrNoAuth):
			// not ours: we may read what we make
		case err != nil:
			return "", nil, err
		case stat.EphemeralOwner == l.id && bytes.Equal(data, j.data), fault.Is(fault.AdoptOwnerless):
			return join(dir, name), stat, nil
		}
	}
	return "", nil, nil
}

// enlist makes the creation known to the wire, by its data.
func (l *Life) enlist(j *creation) (strike func()) {
	l.mu.Lock()
	l.creations[string(j.data)] = j
	l.mu.Unlock()
	return func() {
		l.mu.Lock()
		delete(l.creations, string(j.data))
		l.mu.Unlock()
	}
}

func (l *Life) creationOf(data string) *creation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.creations[data]
}
