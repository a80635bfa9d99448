package zktest

import "github.com/lockkeeper/lockkeeper/internal/jute"

// multiRead carries out several reads, each of which succeeds or fails on its
// own. As on the real server, one that fails ends nothing.
func (c *conn) multiRead(d *jute.Decoder, e *jute.Encoder) Code {
	type read struct {
		op  Op
		buf []byte
	}
	var reads []read
	for {
		op, done, _ := Op(d.Int32()), d.Bool(), d.Int32()
		if d.Err != nil {
			return MarshallingError
		}
		if done {
			break
		}
		start := d.Buf
		d.Text()
		d.Bool()
		if d.Err != nil || op != OpGetData && op != OpGetChildren {
			return MarshallingError
		}
		reads = append(reads, read{op, start})
	}
	for _, r := range reads {
		body := &jute.Encoder{}
		if code := handlers[r.op].run(c, &jute.Decoder{Buf: r.buf}, body); code != codeOK {
			multiHeader(e, opError, false, code)
			e.Int32(int32(code))
			continue
		}
		multiHeader(e, r.op, false, codeOK)
		e.Buf = append(e.Buf, body.Buf...)
	}
	multiHeader(e, opError, true, -1)
	return codeOK
}
