package jute

import (
	"encoding/binary"
	"fmt"
)

// Encoder appends fields to Buf.
type Encoder struct{ Buf []byte }

// NewFrame returns an Encoder with room for the length, which Sealed fills in.
func NewFrame() *Encoder { return &Encoder{Buf: make([]byte, 4, 128)} }

// Sealed returns the frame with its length in front.
func (e *Encoder) Sealed() []byte {
	binary.BigEndian.PutUint32(e.Buf, uint32(len(e.Buf)-4))
	return e.Buf
}

// Bool appends one byte.
func (e *Encoder) Bool(v bool) {
	var b byte
	if v {
		b = 1
	}
	e.Buf = append(e.Buf, b)
}

// Int32 appends four bytes.
func (e *Encoder) Int32(v int32) { e.Buf = binary.BigEndian.AppendUint32(e.Buf, uint32(v)) }

// Int64 appends eight bytes.
func (e *Encoder) Int64(v int64) { e.Buf = binary.BigEndian.AppendUint64(e.Buf, uint64(v)) }

// Bytes appends a buffer; nil is one of length -1.
func (e *Encoder) Bytes(v []byte) {
	if v == nil {
		e.Int32(-1)
		return
	}
	e.Int32(int32(len(v)))
	e.Buf = append(e.Buf, v...)
}

// Text appends a string.
func (e *Encoder) Text(v string) {
	e.Int32(int32(len(v)))
	e.Buf = append(e.Buf, v...)
}

// Strings appends a list of strings.
func (e *Encoder) Strings(v []string) {
	e.Int32(int32(len(v)))
	for _, s := range v {
		e.Text(s)
	}
}

// ACLs appends a list of ACLs.
func (e *Encoder) ACLs(v []ACL) {
	e.Int32(int32(len(v)))
	for _, a := range v {
		e.Int32(a.Perms)
		e.Text(a.Scheme)
		e.Text(a.ID)
	}
}

// Stat appends what is told about a node.
func (e *Encoder) Stat(s Stat) {
	e.Int64(s.Czxid)
	e.Int64(s.Mzxid)
	e.Int64(s.Ctime)
	e.Int64(s.Mtime)
	e.Int32(s.Version)
	e.Int32(s.Cversion)
	e.Int32(s.Aversion)
	e.Int64(s.EphemeralOwner)
	e.Int32(s.DataLength)
	e.Int32(s.NumChildren)
	e.Int64(s.Pzxid)
}

// Fields appends any number of fields by their types; an int is an Int32, and
// a []any are fields again. It panics at a type that no field has.
func (e *Encoder) Fields(fields ...any) {
	for _, f := range fields {
		switch f := f.(type) {
		case bool:
			e.Bool(f)
		case int:
			e.Int32(int32(f))
		case int32:
			e.Int32(f)
		case int64:
			e.Int64(f)
		case string:
			e.Text(f)
		case []byte:
			e.Bytes(f)
		case []string:
			e.Strings(f)
		case []ACL:
			e.ACLs(f)
		case []any:
			e.Fields(f...)
		default:
			panic(fmt.Sprintf("jute: no field is a %T", f))
		}
	}
}
