package queue

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/lockkeeper/lockkeeper/internal/fault"
)

// A Node is a contender's node, as far as its name tells.
type Node struct {
	Name  string
	Kind  string // what it asks for, by its keyword
	Seq   int64  // place in the queue: 0 to 2³²−1
	Alone bool   // it holds alone, by its keyword
}

// seqLimit is where new contenders are refused. Sequence numbers are signed and
// have 32 bits: current servers stick at the largest one, which then comes again
// and again, older ones go on with negative numbers. It leaves room for contenders
// that queued in the meantime and for other libraries.
const seqLimit = math.MaxInt32 - 1<<20

// A Keyword is the part of a name between the free beginning and the sequence
// number.
type Keyword struct {
	Text, Kind string
	// Alone says that who holds by this keyword holds alone. When it releases,
	// everybody before it is gone, which it writes into the directory's record.
	Alone bool
}

// parse takes a name apart. Names without one of the keywords, or without a
// sequence number after it, are no contenders.
func parse(name string, keywords []Keyword) (Node, bool) {
	for _, k := range keywords {
		i := strings.LastIndex(name, k.Text)
		if i < 0 {
			continue
		}
		if seq, ok := parseSeq(name[i+len(k.Text):]); ok {
			return Node{Name: name, Kind: k.Kind, Seq: seq, Alone: k.Alone}, true
		}
	}
	return Node{}, false
}

// parseSeq reads what the server appends: a 32-bit number, at least ten
// characters wide. A counter that has wrapped goes on after the positive ones.
func parseSeq(s string) (int64, bool) {
	padded := len(s) == 10 && s[0] != '+'
	if !padded && !(len(s) == 11 && s[0] == '-' && s[1] != '0') {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n == 0 && s[0] == '-' {
		return 0, false
	}
	return int64(uint32(n)), true
}

// prefix is what our names in a directory begin with.
func prefix(dirCzxid int64, keyword string) string {
	if fault.Is(fault.ReleaseByName) {
		return keyword
	}
	return strconv.FormatInt(dirCzxid, 16) + "-" + keyword
}

// nameAt computes the name of one of ours.
func nameAt(prefix string, seq int64) string { return fmt.Sprintf("%s%010d", prefix, seq) }
