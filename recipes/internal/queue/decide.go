package queue

import (
	"cmp"
	"slices"

	"github.com/lockkeeper/lockkeeper/internal/fault"
)

// A view is what one contender knows of those ahead of it. Whatever it knows
// stays true: numbers are given in order and never again, so those ahead can only
// become fewer.
type view struct {
	self  Node
	rule  func(other, self Node) bool // whether other, being ahead, is in the way
	mixed bool                        // not all contenders hold alone

	released int64 // every number up to this one is gone
	goneFrom int64 // so is every number from this one up to our own
	listed   bool  // ahead is complete
	ahead    []Node
	blind    bool // the node just before goneFrom has no name that can be computed

	// suspect is one more than the largest number of a contender that has gone, and
	// may have held and left another there under its own number: a reader that was
	// granted under a writer. If it released as the last of its number, released
	// says so.
	suspect int64
}

type step int

const (
	grant step = iota // nobody is in the way
	watch             // wait for a node to go
	list              // not enough is known: list the directory
)

// decide says what a contender with this view must do, and for watch, which node
// to watch: the nearest that is in the way, or by number alone the nearest that
// may be.
func decide(v view) (step, Node) {
	if v.released >= v.goneFrom-1 {
		return grant, Node{}
	}
	if v.suspect > v.released+1 {
		return list, Node{}
	}
	if v.listed {
		for _, n := range slices.Backward(v.ahead) {
			if n.Seq > v.released && v.rule(n, v.self) {
				return watch, n
			}
		}
		return grant, Node{}
	}
	if v.blind {
		return list, Node{}
	}
	return watch, Node{Seq: v.goneFrom - 1}
}

// newView is that of a contender that has just queued.
func newView(self Node, released int64, rule func(other, self Node) bool) view {
	return view{self: self, rule: rule, released: released, goneFrom: self.Seq}
}

// list takes in the names in the directory and reports whether our own is among
// them.
func (v *view) list(nodes []Node) (present bool) {
	v.listed = true
	v.ahead = nil
	v.suspect = 0
	for _, n := range nodes {
		switch {
		case n.Name == v.self.Name:
			present = true
		case fault.Is(fault.OrderByName) && n.Name > v.self.Name:
		case n.Seq <= v.self.Seq, fault.Is(fault.OrderByName): // with our number: whether it is ahead is seen when it is looked at
			v.ahead = append(v.ahead, n)
		}
	}
	slices.SortFunc(v.ahead, compare)
	return present
}

func compare(a, b Node) int {
	if fault.Is(fault.OrderByName) {
		return cmp.Compare(a.Name, b.Name)
	}
	return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Name, b.Name))
}

// gone takes in that n is not there. seen says that it was there before: where
// its name was only computed, a node that was never seen may be there under
// another library's name.
func (v *view) gone(n Node, seen bool) {
	suspected := v.mixed && n.Alone && v.self.Alone // nobody else is stopped by what it may have left
	if suspected {
		v.suspect = max(v.suspect, n.Seq+1)
	}
	switch {
	case v.listed:
		v.notAhead(n)
	case seen && suspected:
		v.goneFrom = n.Seq + 1
	case seen:
		v.goneFrom = n.Seq
	default:
		v.blind = true
	}
}

// notAhead takes in that n, which was listed, is not in the way.
func (v *view) notAhead(n Node) {
	v.ahead = slices.DeleteFunc(v.ahead, func(o Node) bool { return o.Name == n.Name })
}
