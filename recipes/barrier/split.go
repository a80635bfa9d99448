package barrier

import (
	"slices"

	"github.com/lockkeeper/lockkeeper/recipes/internal/member"
)

// split tells those who are still inside from those who wait, who have numbers
// above open. It returns the name of the one inside that entered last, "" if there
// is none, and the numbers of those who wait, in order.
func split(names []string, open int64) (inside string, waiting []int64) {
	last := int64(-1)
	for _, name := range names {
		switch seq, ok := member.Sequence(name); {
		case !ok:
		case seq > open:
			waiting = append(waiting, seq)
		case seq > last:
			inside, last = name, seq
		}
	}
	slices.Sort(waiting)
	return inside, waiting
}
