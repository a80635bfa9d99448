package zktest

import "github.com/lockkeeper/lockkeeper/internal/jute"

// setWatches sets the watches of a lost connection anew. What happened since
// the zxid that the client has seen is told at once instead.
func (c *conn) setWatches(d *jute.Decoder, _ *jute.Encoder) Code {
	since, data, exist, child := d.Int64(), d.Strings(), d.Strings(), d.Strings()
	if d.Err != nil {
		return MarshallingError
	}
	c.rewatch(since, data, exist, child)
	return codeOK
}

// setWatches2 does so for those that last, too. What these have missed is told
// by nobody.
func (c *conn) setWatches2(d *jute.Decoder, _ *jute.Encoder) Code {
	since, data, exist, child := d.Int64(), d.Strings(), d.Strings(), d.Strings()
	lasting, below := d.Strings(), d.Strings()
	if d.Err != nil {
		return MarshallingError
	}
	c.rewatch(since, data, exist, child)
	for _, path := range lasting {
		c.s.watches.addLasting(c, path, persistent)
	}
	for _, path := range below {
		c.s.watches.addLasting(c, path, recursive)
	}
	return codeOK
}

func (c *conn) rewatch(since int64, data, exist, child []string) {
	t := c.view()
	for _, path := range data {
		switch n := t.get(path); {
		case n == nil:
			c.event(deleted, path, noZxid)
		case n.mzxid > since:
			c.event(changed, path, noZxid)
		default:
			c.s.watches.add(c, onData(path), oneShot)
		}
	}
	for _, path := range exist {
		if t.get(path) != nil {
			c.event(created, path, noZxid)
		} else {
			c.s.watches.add(c, onData(path), oneShot)
		}
	}
	for _, path := range child {
		switch n := t.get(path); {
		case n == nil:
			c.event(deleted, path, noZxid)
		case n.pzxid > since:
			c.event(childrenChanged, path, noZxid)
		default:
			c.s.watches.add(c, onChildren(path), oneShot)
		}
	}
}
