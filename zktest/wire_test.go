package zktest

import (
	"slices"
	"testing"
)

func TestDecoderDistrustsLengths(t *testing.T) {
	for what, read := range map[string]func(*decoder){
		"list":          func(d *decoder) { d.strings() },
		"ACL":           func(d *decoder) { d.acls() },
		"bytes":         func(d *decoder) { d.bytes() },
		"negative list": func(d *decoder) { d.take(4); d.strings() },
	} {
		d := &decoder{buf: []byte{0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}}
		if read(d); d.err == nil {
			t.Error(what)
		}
		if d.int64() != 0 || d.bool() || d.string() != "" {
			t.Errorf("%s: something was read after the error", what)
		}
	}
}

func TestFieldsSurviveTheWire(t *testing.T) {
	acl := []aclEntry{{31, "world", "anyone"}}
	e := &encoder{}
	encodeFields(e, []any{true, int32(-5), int64(-6), "é", []byte(nil), []byte{}, []string{"a", ""}, acl})
	stat := Stat{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	e.stat(stat)
	d := &decoder{buf: e.buf}
	if !d.bool() || d.int32() != -5 || d.int64() != -6 || d.string() != "é" || d.bytes() != nil || d.bytes() == nil ||
		!slices.Equal(d.strings(), []string{"a", ""}) || !slices.Equal(d.acls(), acl) || d.stat() != stat ||
		d.err != nil || len(d.buf) != 0 {
		t.Errorf("%+v", d)
	}
}

func TestNames(t *testing.T) {
	if OpGetChildren2.String() != "getChildren2" || Op(99).String() != "op(99)" {
		t.Error("ops")
	}
	if NoNode.Error() != "no node (-101)" || Code(-1000).Error() != "code -1000" {
		t.Error("codes")
	}
}
