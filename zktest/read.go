package zktest

import (
	"strings"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

// readable finds the node that a request reads, in the connection's own view.
func (c *conn) readable(path string, perm int32) (*node, Code) {
	n := c.view().get(path)
	if n == nil {
		return nil, NoNode
	}
	if !allowed(n.acl, perm, c.ids) {
		return nil, NoAuth
	}
	return n, codeOK
}

// exists needs no permission. Its watch also waits for a node that isn't there.
func (c *conn) exists(d *jute.Decoder, e *jute.Encoder) Code {
	path, watch := d.Text(), d.Bool()
	if d.Err != nil {
		return MarshallingError
	}
	if strings.ContainsRune(path, 0) {
		return BadArguments
	}
	if watch {
		c.s.watches.add(c, onData(path), oneShot)
	}
	n := c.view().get(path)
	if n == nil {
		return NoNode
	}
	e.Stat(n.stat())
	return codeOK
}

func (c *conn) getData(d *jute.Decoder, e *jute.Encoder) Code {
	path, watch := d.Text(), d.Bool()
	if d.Err != nil {
		return MarshallingError
	}
	n, code := c.readable(path, permRead)
	if code != codeOK {
		return code
	}
	if watch {
		c.s.watches.add(c, onData(path), oneShot)
	}
	e.Bytes(n.data)
	e.Stat(n.stat())
	return codeOK
}

func (c *conn) getChildren(d *jute.Decoder, e *jute.Encoder) Code {
	_, code := c.list(d, e)
	return code
}

func (c *conn) getChildren2(d *jute.Decoder, e *jute.Encoder) Code {
	n, code := c.list(d, e)
	if code == codeOK {
		e.Stat(n.stat())
	}
	return code
}

func (c *conn) list(d *jute.Decoder, e *jute.Encoder) (*node, Code) {
	path, watch := d.Text(), d.Bool()
	if d.Err != nil {
		return nil, MarshallingError
	}
	n, code := c.readable(path, permRead)
	if code != codeOK {
		return nil, code
	}
	if watch {
		c.s.watches.add(c, onChildren(path), oneShot)
	}
	e.Strings(c.view().childrenOf(path))
	return n, codeOK
}

// getACL shows password digests only to those who may change the ACL.
func (c *conn) getACL(d *jute.Decoder, e *jute.Encoder) Code {
	path := d.Text()
	if d.Err != nil {
		return MarshallingError
	}
	n, code := c.readable(path, permRead|permAdmin)
	if code != codeOK {
		return code
	}
	acl := n.acl
	if !allowed(n.acl, permAdmin, c.ids) {
		acl = maskACL(acl)
	}
	e.ACLs(acl)
	e.Stat(n.stat())
	return codeOK
}
