package jute

import (
	"encoding/binary"
	"errors"
)

// ErrShort is the error of a Decoder that has run out of bytes.
var ErrShort = errors.New("jute: record is shorter than its fields")

// Decoder reads the fields of a record from Buf. The first field that doesn't
// fit sets Err; from then on every method returns zero values, so that callers
// check Err once, after the last field.
type Decoder struct {
	Buf []byte
	Err error
}

func (d *Decoder) take(n int) []byte {
	if d.Err != nil {
		return nil
	}
	if n < 0 || n > len(d.Buf) {
		d.Err = ErrShort
		return nil
	}
	b := d.Buf[:n]
	d.Buf = d.Buf[n:]
	return b
}

// Bool reads a byte that is 0 or not.
func (d *Decoder) Bool() bool {
	b := d.take(1)
	return b != nil && b[0] != 0
}

// Int32 reads four bytes.
func (d *Decoder) Int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Int64 reads eight bytes.
func (d *Decoder) Int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// Bytes returns a copy of a buffer; a length of -1 is nil, which is not the
// same as empty.
func (d *Decoder) Bytes() []byte {
	n := d.Int32()
	if d.Err != nil || n == -1 {
		return nil
	}
	b := d.take(int(n))
	if d.Err != nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

// Text reads a string; one of length -1 is empty.
func (d *Decoder) Text() string { return string(d.Bytes()) }

// count returns the length of a list whose elements take at least size bytes
// each, so that a lying length can't make the caller allocate.
func (d *Decoder) count(size int) int {
	n := int(d.Int32())
	if d.Err != nil || n == -1 {
		return 0
	}
	if n < 0 || n > len(d.Buf)/size {
		d.Err = ErrShort
		return 0
	}
	return n
}

// Strings reads a list of strings; one of length -1 is empty.
func (d *Decoder) Strings() []string {
	list := make([]string, 0, d.count(4))
	for range cap(list) {
		list = append(list, d.Text())
	}
	return list
}

// ACLs reads a list of ACLs.
func (d *Decoder) ACLs() []ACL {
	list := make([]ACL, 0, d.count(12))
	for range cap(list) {
		list = append(list, ACL{Perms: d.Int32(), Scheme: d.Text(), ID: d.Text()})
	}
	return list
}

// Stat reads what is told about a node.
func (d *Decoder) Stat() Stat {
	return Stat{
		Czxid: d.Int64(), Mzxid: d.Int64(), Ctime: d.Int64(), Mtime: d.Int64(),
		Version: d.Int32(), Cversion: d.Int32(), Aversion: d.Int32(),
		EphemeralOwner: d.Int64(), DataLength: d.Int32(), NumChildren: d.Int32(), Pzxid: d.Int64(),
	}
}
