package zktest

// step is one change as it stands in a request: alone, or in a multi. run
// carries it out and writes what a lone request is answered with.
type step func(tx *txn, e *encoder) Code

// parseStep reads the fields of a write. The error is in d.
func parseStep(op Op, d *decoder) (step, bool) {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		return parseCreate(op, d), true
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

// The modes of a creation, by the number on the wire.
const (
	modePersistent int32 = iota
	modeEphemeral
	modeSequential
	modeEphemeralSequential
	modeContainer
	modeTTL
	modeSequentialTTL
)

func parseCreate(op Op, d *decoder) step {
	cr := creation{path: d.string(), data: d.bytes(), acl: d.acls()}
	mode, ttl := d.int32(), int64(-1)
	if op == OpCreateTTL {
		ttl = d.int64()
	}
	cr.sequential = mode == modeSequential || mode == modeEphemeralSequential || mode == modeSequentialTTL
	hasTTL := mode == modeTTL || mode == modeSequentialTTL
	bad := mode < modePersistent || mode > modeSequentialTTL ||
		hasTTL != (ttl >= 0) || hasTTL && (ttl == 0 || ttl > maxTTL)

	return func(tx *txn, e *encoder) Code {
		if bad {
			return BadArguments
		}
		switch {
		case mode == modeEphemeral || mode == modeEphemeralSequential:
			cr.owner = tx.session
		case op == OpCreateContainer:
			cr.owner = ownerContainer
		case hasTTL:
			cr.owner = ownerTTL | ttl
		}
		path, n, code := tx.create(cr)
		if code != codeOK {
			return code
		}
		e.string(path)
		if op != OpCreate {
			e.stat(n.stat())
		}
		return codeOK
	}
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
