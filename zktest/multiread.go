package zktest

import "github.com/lockkeeper/lockkeeper/internal/jute"

// multiRead carries out several reads, each of which succeeds or fails on its
// own. As on the real server, one that fails ends nothing.
func (c *conn) multiRead(d *jute.Decoder, e *jute.Encoder) Code {
	var reads []part
	for {
		op, done, _ := Op(d.Int32()), d.Bool(), d.Int32()
		if d.Err != nil {
			return MarshallingError
		}
		if done {
			break
		}
		p, ok := c.parseRead(op, d)
		if !ok || d.Err != nil {
			return MarshallingError
		}
		reads = append(reads, p)
	}
	code := codeOK
	for _, r := range reads {
		if r.run == nil {
			code = MarshallingError // with the results so far
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

// parseRead reads one part. A part that is a write is well-formed, and fails
// only when its turn comes.
func (c *conn) parseRead(op Op, d *jute.Decoder) (part, bool) {
	h := handlers[op]
	switch op {
	case OpGetData, OpGetChildren:
		e := &jute.Encoder{}
		e.Fields(d.Text(), d.Bool())
		return part{op, func(_ *txn, out *jute.Encoder) Code {
			return h.run(c, &jute.Decoder{Buf: e.Buf}, out)
		}}, true
	}
	p, ok := parsePart(op, d)
	return part{op: p.op}, ok
}
