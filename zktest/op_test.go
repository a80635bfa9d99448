package zktest

import "testing"

func TestNames(t *testing.T) {
	if OpGetChildren2.String() != "getChildren2" || Op(99).String() != "op(99)" {
		t.Error("ops")
	}
	if NoNode.Error() != "no node (-101)" || Code(-1000).Error() != "code -1000" {
		t.Error("codes")
	}
}
