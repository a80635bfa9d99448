package zktest

// step is one change as it stands in a request: alone, or in a multi. run
// carries it out and writes what a lone request is answered with.
type step func(tx *txn, e *encoder) Code

// parseStep reads the fields of a write. The error is in d.
func parseStep(op Op, d *decoder) (step, bool) {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		return readCreate(op, d).step(op), true
	case OpDelete:
		path, version := d.string(), d.int32()
		return func(tx *txn, _ *encoder) Code { return tx.delete(path, version) }, true
	case OpSetData:
		path, data, version := d.string(), d.bytes(), d.int32()
		return func(tx *txn, e *encoder) Code {
			n, code := tx.setData(path, data, version)
			if code == codeOK {
				e.stat(n.stat())
			}
			return code
		}, true
	case OpSetACL:
		path, acl, version := d.string(), d.acls(), d.int32()
		return func(tx *txn, e *encoder) Code {
			n, code := tx.setACL(path, acl, version)
			if code == codeOK {
				e.stat(n.stat())
			}
			return code
		}, true
	case OpCheck:
		path, version := d.string(), d.int32()
		return func(tx *txn, _ *encoder) Code { return tx.check(path, version) }, true
	}
	return nil, false
}

// writer makes the handler of a lone write.
func writer(op Op) func(*conn, *decoder, *encoder) Code {
	return func(c *conn, d *decoder, e *encoder) Code {
		tx := c.s.begin(c.sess.id, c.ids)
		run, _ := parseStep(op, d)
		code := MarshallingError
		if d.err == nil {
			code = run(tx, e)
		}
		tx.end(code)
		return code
	}
}
