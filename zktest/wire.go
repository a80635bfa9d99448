package zktest

import (
	"encoding/binary"
	"errors"
	"io"
)

// maxFrame is what the real server takes by default (jute.maxbuffer).
const maxFrame = 0xfffff

var (
	errFrameLength = errors.New("zktest: frame length out of range")
	errShort       = errors.New("zktest: request is shorter than its fields")
)

// readFrame reads one length-prefixed frame. It allocates maxFrame bytes at
// the most, whatever the prefix says.
func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	return readBody(r, head)
}

// readBody reads what follows a length prefix that was read already.
func readBody(r io.Reader, head [4]byte) ([]byte, error) {
	n := int32(binary.BigEndian.Uint32(head[:]))
	if n < 0 || n > maxFrame {
		return nil, errFrameLength
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}

// decoder reads the fields of a request. The first field that doesn't fit sets
// err; from then on every method returns zero values, so that callers check err
// once, after the last field.
type decoder struct {
	buf []byte
	err error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil {
		return nil
	}
	if n < 0 || n > len(d.buf) {
		d.err = errShort
		return nil
	}
	b := d.buf[:n]
	d.buf = d.buf[n:]
	return b
}

func (d *decoder) bool() bool {
	b := d.take(1)
	return b != nil && b[0] != 0
}

func (d *decoder) int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// bytes returns a copy; a length of -1 is nil, which is not the same as empty.
func (d *decoder) bytes() []byte {
	n := d.int32()
	if d.err != nil || n == -1 {
		return nil
	}
	b := d.take(int(n))
	if d.err != nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

func (d *decoder) string() string { return string(d.bytes()) }

// count returns the length of a list whose elements take at least size bytes
// each, so that a lying length can't make the caller allocate.
func (d *decoder) count(size int) int {
	n := int(d.int32())
	if d.err != nil || n == -1 {
		return 0
	}
	if n < 0 || n > len(d.buf)/size {
		d.err = errShort
		return 0
	}
	return n
}

func (d *decoder) strings() []string {
	list := make([]string, 0, d.count(4))
	for range cap(list) {
		list = append(list, d.string())
	}
	return list
}

func (d *decoder) acls() []aclEntry {
	list := make([]aclEntry, 0, d.count(12))
	for range cap(list) {
		list = append(list, aclEntry{Perms: d.int32(), Scheme: d.string(), ID: d.string()})
	}
	return list
}

// encoder appends fields to a frame.
type encoder struct{ buf []byte }

func (e *encoder) bool(v bool) {
	var b byte
	if v {
		b = 1
	}
	e.buf = append(e.buf, b)
}

func (e *encoder) int32(v int32) { e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(v)) }
func (e *encoder) int64(v int64) { e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(v)) }

func (e *encoder) bytes(v []byte) {
	if v == nil {
		e.int32(-1)
		return
	}
	e.int32(int32(len(v)))
	e.buf = append(e.buf, v...)
}

func (e *encoder) string(v string) {
	e.int32(int32(len(v)))
	e.buf = append(e.buf, v...)
}

func (e *encoder) strings(v []string) {
	e.int32(int32(len(v)))
	for _, s := range v {
		e.string(s)
	}
}

func (e *encoder) acls(v []aclEntry) {
	e.int32(int32(len(v)))
	for _, a := range v {
		e.int32(a.Perms)
		e.string(a.Scheme)
		e.string(a.ID)
	}
}

func (e *encoder) stat(s Stat) {
	e.int64(s.Czxid)
	e.int64(s.Mzxid)
	e.int64(s.Ctime)
	e.int64(s.Mtime)
	e.int32(s.Version)
	e.int32(s.Cversion)
	e.int32(s.Aversion)
	e.int64(s.EphemeralOwner)
	e.int32(s.DataLength)
	e.int32(s.NumChildren)
	e.int64(s.Pzxid)
}

// newReply starts a frame with a reply header; sealed fills in the length.
func newReply(xid int32, zxid int64, code Code) *encoder {
	e := &encoder{buf: make([]byte, 4, 128)}
	e.int32(xid)
	e.int64(zxid)
	e.int32(int32(code))
	return e
}

func (e *encoder) sealed() []byte {
	binary.BigEndian.PutUint32(e.buf, uint32(len(e.buf)-4))
	return e.buf
}
