package zktest

import "github.com/lockkeeper/lockkeeper/internal/jute"

// part is one change in a multi; op says what its result looks like.
type part struct {
	op  Op
	run step
}

// parseMulti reads the parts of a multi up to the closing header.
func parseMulti(d *jute.Decoder) ([]part, bool) {
	var parts []part
	for {
		op, done, _ := Op(d.Int32()), d.Bool(), d.Int32()
		if d.Err != nil {
			return nil, false
		}
		if done {
			return parts, true
		}
		p, ok := parsePart(op, d)
		if !ok || d.Err != nil {
			return nil, false
		}
		parts = append(parts, p)
	}
}

func parsePart(op Op, d *jute.Decoder) (part, bool) {
	switch op {
	case OpSetACL:
		return part{}, false
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		r := readCreate(op, d)
		op, ok := r.inMulti(op)
		return part{op, r.step(op)}, ok
	}
	run, ok := parseStep(op, d)
	return part{op, run}, ok
}

// multi carries out several writes as one txn. If one fails, nothing happens,
// and the answer, in itself a success, says for each part: 0 before the one
// that failed, its code there, RuntimeInconsistency after it.
func (c *conn) multi(d *jute.Decoder, e *jute.Encoder) Code {
	tx := c.s.begin(c.sess.id, c.ids)
	parts, ok := parseMulti(d)
	if !ok {
		tx.end(MarshallingError)
		return MarshallingError
	}
	results := make([]*jute.Encoder, len(parts))
	for i, p := range parts {
		results[i] = &jute.Encoder{}
		if code := p.run(tx, results[i]); code != codeOK {
			tx.end(code)
			failedMulti(e, len(parts), i, code)
			return codeOK
		}
	}
	tx.end(codeOK)
	for i, p := range parts {
		op := p.op
		if op == OpCreateContainer || op == OpCreateTTL {
			op = OpCreate2 // what they answer like
		}
		multiHeader(e, op, false, codeOK)
		e.Buf = append(e.Buf, results[i].Buf...)
	}
	multiHeader(e, opError, true, -1)
	return codeOK
}

func failedMulti(e *jute.Encoder, n, failed int, code Code) {
	for i := range n {
		result := codeOK
		switch {
		case i == failed:
			result = code
		case i > failed:
			result = RuntimeInconsistency
		}
		multiHeader(e, opError, false, result)
		e.Int32(int32(result))
	}
	multiHeader(e, opError, true, -1)
}

func multiHeader(e *jute.Encoder, op Op, done bool, code Code) {
	e.Int32(int32(op))
	e.Bool(done)
	e.Int32(int32(code))
}
