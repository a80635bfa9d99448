package zktest

import (
	"cmp"
	"slices"
	"unicode/utf16"
)

// A real server lists names in the order of its hash tables. This one does the
// same: it is the same every time, and not sorted, so that a client that forgets
// to sort is found out.

// hashEntry is a name in a table; of those in one bucket the oldest comes first.
type hashEntry struct {
	name   string
	serial int64
}

// hashOrder sorts the names as Java's HashSet with a table of this size does.
func hashOrder(entries []hashEntry, size uint32) []string {
	slices.SortFunc(entries, func(a, b hashEntry) int {
		return cmp.Or(cmp.Compare(bucket(a.name, size), bucket(b.name, size)), cmp.Compare(a.serial, b.serial))
	})
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.name
	}
	return names
}

func bucket(name string, size uint32) uint32 {
	var h uint32
	for _, c := range utf16.Encode([]rune(name)) {
		h = 31*h + uint32(c)
	}
	return (h ^ h>>16) & (size - 1)
}

// copiedOrder is the order of a copy of the set that has the given order: its
// table has the size that its number asks for.
func copiedOrder(names []string) []string {
	size := uint32(1)
	for int(size) < len(names)*4/3+1 {
		size *= 2
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(bucket(a, size), bucket(b, size)) })
	return names
}

// The sizes that the tables for a node's children, and for what a session owns,
// begin with. They grow with the number and never shrink.
const (
	firstTable = 8
	ownedTable = 16
)

func grownTable(size uint32, n int) uint32 {
	for size = max(size, firstTable); int(size)*3/4 < n; {
		size *= 2
	}
	return size
}
