package truth

import (
	"testing"

	"pgregory.net/rapid"
)

func (s servers) generated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s.compare(t, script(rapid.SliceOfN(rapid.Custom(drawStep), 1, 40).Draw(t, "script")))
	})
}
