package zktest

import "github.com/lockkeeper/lockkeeper/internal/jute"

// step is one change as it stands in a request: alone, or in a multi. run
// carries it out and writes what a lone request is answered with.
type step func(tx *txn, e *jute.Encoder) Code

// parseStep reads the fields of a write. The error is in d.
func parseStep(op Op, d *jute.Decoder) (step, bool) {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		return readCreate(op, d).step(op), true
	case OpDelete:
		path, version := d.Text(), d.Int32()
		return func(tx *txn, _ *jute.Encoder) Code { return tx.delete(path, version) }, true
	case OpSetData:
		path, data, version := d.Text(), d.Bytes(), d.Int32()
		return func(tx *txn, e *jute.Encoder) Code {
			n, code := tx.setData(path, data, version)
			if code == codeOK {
				e.Stat(n.stat())
			}
			return code
		}, true
	case OpSetACL:
		path, acl, version := d.Text(), d.ACLs(), d.Int32()
		return func(tx *txn, e *jute.Encoder) Code {
			n, code := tx.setACL(path, acl, version)
			if code == codeOK {
				e.Stat(n.stat())
			}
			return code
		}, true
	case OpCheck:
		path, version := d.Text(), d.Int32()
		return func(tx *txn, _ *jute.Encoder) Code { return tx.check(path, version) }, true
	}
	return nil, false
}

// writer makes the handler of a lone write.
func writer(op Op) func(*conn, *jute.Decoder, *jute.Encoder) Code {
	return func(c *conn, d *jute.Decoder, e *jute.Encoder) Code {
		tx := c.s.begin(c.sess.id, c.ids)
		run, _ := parseStep(op, d)
		code := MarshallingError
		if d.Err == nil {
			code = run(tx, e)
		}
		tx.end(code)
		return code
	}
}
