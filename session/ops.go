package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockkeeper/lockkeeper/internal/fault"
)

// Get reads a node. A missing one is an [Error] with reason zk.ErrNoNode.
func (l *Life) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	type node struct {
		data []byte
		stat *zk.Stat
	}
	n, err := repeat(ctx, l, "get", path, func(c *zk.Conn) (node, error) {
		data, stat, err := c.Get(l.Full(path))
		return node{data, stat}, err
	})
	return n.data, n.stat, err
}

// Exists reads a node's stat; nil where there is no such node.
func (l *Life) Exists(ctx context.Context, path string) (*zk.Stat, error) {
	return repeat(ctx, l, "exists", path, func(c *zk.Conn) (*zk.Stat, error) {
		there, stat, err := c.Exists(l.Full(path))
		if err != nil || !there {
			return nil, err
		}
		return stat, nil
	})
}

// Children lists the names below a node, in no order.
func (l *Life) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	type list struct {
		names []string
		stat  *zk.Stat
	}
	n, err := repeat(ctx, l, "children", path, func(c *zk.Conn) (list, error) {
		names, stat, err := c.Children(l.Full(path))
		return list{names, stat}, err
	})
	return n.names, n.stat, err
}

// Sync has the server to which we are connected catch up: what is read after it, in this
// life, is no older than the call. The node need not be there.
func (l *Life) Sync(ctx context.Context, path string) error {
	_, err := repeat(ctx, l, "sync", path, func(c *zk.Conn) (string, error) { return c.Sync(l.Full(path)) })
	return err
}

// Multi carries out all ops or none, once. The ops are those of zk.Conn.Multi,
// with paths below the chroot, and Config.ACL where a create has none; they are not
// changed. If no answer came, the
// reason is ErrOutcomeUnknown, or LastErr is where ctx or the life ended first.
func (l *Life) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	full := make([]any, len(ops))
	for i, op := range ops {
		var err error
		if full[i], err = l.below(op); err != nil {
			return nil, err
		}
	}
	res, err := once(ctx, l, "multi", "", func(c *zk.Conn) ([]zk.MultiResponse, error) {
		return l.commit(c, full...)
	})
	for i := range res {
		res[i].String = l.cut(res[i].String)
	}
	return res, err
}

// CheckOps returns the error with which Multi refuses operations that it doesn't know.
func (l *Life) CheckOps(ops ...any) error {
	for _, op := range ops {
		if _, err := l.below(op); err != nil {
			return err
		}
	}
	return nil
}

// commit makes a transaction, and counts its success for the trust window.
func (l *Life) commit(c *zk.Conn, ops ...any) ([]zk.MultiResponse, error) {
	sent := time.Now()
	res, err := c.Multi(ops...)
	if err == nil {
		l.committed(sent)
	}
	return res, err
}

func (l *Life) committed(sent time.Time) {
	l.mu.Lock()
	l.win.committed(sent)
	if fault.Is(fault.CountFromReply) {
		l.win.until = l.win.end(time.Now(), l.win.timeout)
	}
	l.mu.Unlock()
}

// below returns op with its path below the chroot.
func (l *Life) below(op any) (any, error) {
	switch o := op.(type) {
	case *zk.CreateRequest:
		c := *o
		c.Path = l.Full(o.Path)
		if len(c.Acl) == 0 {
			c.Acl = l.s.cfg.ACL
		}
		return &c, nil
	case *zk.DeleteRequest:
		c := *o
		c.Path = l.Full(o.Path)
		return &c, nil
	case *zk.SetDataRequest:
		c := *o
		c.Path = l.Full(o.Path)
		return &c, nil
	case *zk.CheckVersionRequest:
		c := *o
		c.Path = l.Full(o.Path)
		return &c, nil
	}
	return nil, invalidf("operation %T: want *zk.CreateRequest, *zk.DeleteRequest, *zk.SetDataRequest or *zk.CheckVersionRequest", op)
}

// Full returns path with the chroot before it, as other clients see it. The path
// "/" is the chroot itself.
func (l *Life) Full(path string) string {
	if path == "/" {
		return cmp.Or(l.s.cfg.Chroot, "/")
	}
	return l.s.cfg.Chroot + path
}

// cut takes the chroot away.
func (l *Life) cut(path string) string {
	if path == "" {
		return "" // no path: a result that names no node
	}
	return cmp.Or(strings.TrimPrefix(path, l.s.cfg.Chroot), "/")
}

// ensureTries bounds how often the node above may vanish between our making it and
// our use of it: an empty container is removed by the server.
const ensureTries = 16

// EnsureContainer makes a container node with data, and the nodes above it, if it
// is not there; what is there stays as it is. Servers that know no containers get
// persistent nodes.
func (l *Life) EnsureContainer(ctx context.Context, path string, data []byte) error {
	for tries := 1; ; tries++ {
		err := l.createContainer(ctx, path, data)
		if !errors.Is(err, zk.ErrNoNode) || parentOf(path) == "/" || tries == ensureTries {
			return err
		}
		if err := l.EnsureContainer(ctx, parentOf(path), nil); err != nil {
			return err
		}
	}
}

func (l *Life) createContainer(ctx context.Context, path string, data []byte) error {
	_, err := repeat(ctx, l, "create", path, func(c *zk.Conn) (string, error) {
		sent := time.Now()
		var err error
		if !l.s.noContainers.Load() {
			_, err = c.Create(l.Full(path), data, zk.FlagContainer, l.s.cfg.ACL) // see wire.noteRequest
			if err != nil && isUnimplemented(err) {
				l.s.noContainers.Store(true)
			}
		}
		if l.s.noContainers.Load() {
			_, err = c.Create(l.Full(path), data, zk.FlagPersistent, l.s.cfg.ACL)
		}
		if err == nil {
			l.committed(sent)
		}
		return "", err
	})
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// makeChroot makes the chroot's nodes, as persistent ones.
func (l *Life) makeChroot() error {
	root := l.s.cfg.Chroot
	if root == "" {
		return nil
	}
	there, err := repeat(l.ctx, l, "exists", root, func(c *zk.Conn) (bool, error) {
		there, _, err := c.Exists(root)
		return there, err
	})
	if err != nil || there {
		return err
	}
	if err := l.makePersistent(root); err != nil {
		return fmt.Errorf("making the chroot: %w", err)
	}
	return nil
}

// makePersistent makes a node, given with the chroot before it, and those above
// where they are missing. It begins at the lowest: what is there need not be
// ours to make.
func (l *Life) makePersistent(full string) error {
	create := func() error {
		_, err := repeat(l.ctx, l, "create", full, func(c *zk.Conn) (string, error) {
			return c.Create(full, nil, zk.FlagPersistent, l.s.cfg.ACL)
		})
		if errors.Is(err, zk.ErrNodeExists) {
			return nil
		}
		return err
	}
	err := create()
	if errors.Is(err, zk.ErrNoNode) && parentOf(full) != "/" {
		if err := l.makePersistent(parentOf(full)); err != nil {
			return err
		}
		err = create()
	}
	return err
}
