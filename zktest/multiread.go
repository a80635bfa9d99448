package zktest

import "github.com/lockkeeper/lockkeeper/internal/jute"

// multiRead carries out several reads, each of which succeeds or fails on its
// own. As on the real server, one that fails ends nothing.
func (c *conn) multiRead(d *jute.Decoder, e *jute.Encoder) Code {
	reads, ok := c.parseReads(d)
	if !ok {
		return MarshallingError
	}
	code := codeOK
	for _, r := range reads {
		if r.op != OpGetData && r.op != OpGetChildren {
			code = MarshallingError // of a list of writes, with an empty list of results
			break
		}
		body := &jute.Encoder{}
		if code := r.run(nil, body); code != codeOK {
			multiHeader(e, opError, false, code)
			e.Int32(int32(code))
			continue
		}
		multiHeader(e, r.op, false, codeOK)
		e.Buf = append(e.Buf, body.Buf...)
	}
	multiHeader(e, opError, true, -1)
	return code
}

// parseReads reads the parts up to the closing header. Reads and writes don't
// mix.
func (c *conn) parseReads(d *jute.Decoder) ([]part, bool) {
	var parts []part
	reads := 0
	for {
		op, done, _ := Op(d.Int32()), d.Bool(), d.Int32()
		if d.Err != nil {
			return nil, false
		}
		if done {
			return parts, reads == 0 || reads == len(parts)
		}
		p, ok := c.parseRead(op, d)
		if !ok || d.Err != nil {
			return nil, false
		}
		if p.run != nil {
			reads++
		}
		parts = append(parts, p)
	}
}

// parseRead reads one part, without what it would do if it is a write.
func (c *conn) parseRead(op Op, d *jute.Decoder) (part, bool) {
	if op != OpGetData && op != OpGetChildren {
		p, ok := parsePart(op, d)
		return part{op: p.op}, ok
	}
	fields := &jute.Encoder{}
	path, _ := d.Text(), d.Bool()
	fields.Fields(path, false) // in a multiRead no watch is set
	return part{op, func(_ *txn, e *jute.Encoder) Code {
		return handlers[op].run(c, &jute.Decoder{Buf: fields.Buf}, e)
	}}, true
}
