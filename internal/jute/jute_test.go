package jute

import (
	"bytes"
	"slices"
	"testing"
)

func TestDecoderDistrustsLengths(t *testing.T) {
	for what, read := range map[string]func(*Decoder){
		"list":          func(d *Decoder) { d.Strings() },
		"ACL":           func(d *Decoder) { d.ACLs() },
		"bytes":         func(d *Decoder) { d.Bytes() },
		"negative list": func(d *Decoder) { d.Int32(); d.Strings() },
	} {
		d := &Decoder{Buf: []byte{0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}}
		if read(d); d.Err == nil {
			t.Error(what)
		}
		if d.Int64() != 0 || d.Bool() || d.Text() != "" {
			t.Errorf("%s: something was read after the error", what)
		}
	}
}

func TestFieldsSurviveTheWire(t *testing.T) {
	acl := []ACL{{31, "world", "anyone"}}
	e := &Encoder{}
	e.Fields(true, int32(-5), int64(-6), "é", []byte(nil), []byte{}, []string{"a", ""}, acl)
	stat := Stat{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	e.Stat(stat)
	d := &Decoder{Buf: e.Buf}
	if !d.Bool() || d.Int32() != -5 || d.Int64() != -6 || d.Text() != "é" || d.Bytes() != nil || d.Bytes() == nil ||
		!slices.Equal(d.Strings(), []string{"a", ""}) || !slices.Equal(d.ACLs(), acl) || d.Stat() != stat ||
		d.Err != nil || len(d.Buf) != 0 {
		t.Errorf("%+v", d)
	}
}

// FuzzFrame: whatever arrives, reading frames ends, with frames within bounds.
func FuzzFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 7, 0, 0, 0, 0})
	f.Add([]byte{0, 0xf, 0xff, 0xff, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x7f, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		for {
			before := r.Len()
			frame, err := ReadFrame(r)
			if err != nil {
				return
			}
			if len(frame) > MaxFrame || before-r.Len() != len(frame)+4 {
				t.Fatalf("frame of %d bytes out of %d", len(frame), before-r.Len())
			}
		}
	})
}

// FuzzRecord: whatever a record holds, reading its fields takes no more than it
// has, and what was read takes no more room than that.
func FuzzRecord(f *testing.F) {
	e := &Encoder{}
	e.Fields("/path", []byte("data"), []string{"a", "b"}, []ACL{{1, "world", "anyone"}}, 1, int64(2), true)
	f.Add([]byte("tdsaibz"), e.Buf)
	f.Add([]byte("s"), []byte{0x7f, 0xff, 0xff, 0xff})
	f.Add([]byte("aS"), []byte{0, 0, 0, 1, 0xff})
	f.Fuzz(func(t *testing.T, fields, data []byte) {
		d := &Decoder{Buf: slices.Clone(data)}
		for _, field := range fields {
			before := len(d.Buf)
			size, failed := 0, d.Err != nil
			switch field {
			case 't':
				size = len(d.Text())
			case 'd':
				size = len(d.Bytes())
			case 's':
				list := d.Strings()
				for _, s := range list {
					size += 4 + len(s)
				}
				size = max(size, 4*cap(list))
			case 'a':
				list := d.ACLs()
				for _, a := range list {
					size += 12 + len(a.Scheme) + len(a.ID)
				}
				size = max(size, 12*cap(list))
			case 'S':
				d.Stat()
			case 'i':
				d.Int32()
			default:
				d.Bool()
			}
			if size > before {
				t.Errorf("%c: %d bytes out of %d", field, size, before)
			}
			if failed && (size > 0 || len(d.Buf) != before) {
				t.Errorf("%c: read on after an error", field)
			}
		}
	})
}
