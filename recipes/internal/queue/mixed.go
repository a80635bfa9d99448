package queue

import "slices"

// Where not all contenders hold alone, as in a read/write lock, the name of the one
// just before can't be computed, since its kind isn't known, and only the release
// of one that held alone says anything about those before it. So the directory is
// listed once, on arrival, and what was seen there is remembered.

// mixed reports whether there are contenders that don't hold alone.
func (r Recipe) mixed() bool {
	return slices.ContainsFunc(r.Keywords, func(k Keyword) bool { return !k.Alone })
}

// alone returns the keyword of ours whose contenders hold alone, if there is one:
// theirs are the names that are computed.
func (r Recipe) alone() (Keyword, bool) {
	i := slices.IndexFunc(r.Keywords, func(k Keyword) bool { return k.Alone })
	if i < 0 {
		return Keyword{}, false
	}
	return r.Keywords[i], true
}

// lists reports whether to list a directory with so many children straight away,
// rather than to look first for one contender by its computed name: where names
// can't be computed, or mostly will not be right and the list is short.
func (r Recipe) lists(children int32) bool {
	_, computable := r.alone()
	return !computable || r.mixed() && children <= shortList
}

// shortList is a list that costs about as much as a few reads.
const shortList = 32
