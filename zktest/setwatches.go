package zktest

import "github.com/lockkeeper/lockkeeper/internal/jute"

// setWatches sets the watches of a lost connection anew. What happened since
// the zxid that the client has seen is told at once instead.
func (c *conn) setWatches(d *jute.Decoder, _ *jute.Encoder) Code {
	since, data, exist, child := d.Int64(), d.Strings(), d.Strings(), d.Strings()
	if d.Err != nil {
		return MarshallingError
	}
	t := c.view()
	for _, path := range data {
		switch n := t.get(path); {
		case n == nil:
			c.event(deleted, path)
		case n.mzxid > since:
			c.event(changed, path)
		default:
			c.s.watches.add(c, onData(path))
		}
	}
	for _, path := range exist {
		if t.get(path) != nil {
			c.event(created, path)
		} else {
			c.s.watches.add(c, onData(path))
		}
	}
	for _, path := range child {
		switch n := t.get(path); {
		case n == nil:
			c.event(deleted, path)
		case n.pzxid > since:
			c.event(childrenChanged, path)
		default:
			c.s.watches.add(c, onChildren(path))
		}
	}
	return codeOK
}
