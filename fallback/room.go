package fallback

// A lock with room for several at a time: see scripts/room.lua. Of those that the
// kinds have in common, each takes a part of the lock's size, in order of arrival,
// and has a time to live of its own.

// roomKind returns a kind of such locks. Its keys are in the order in which the scripts
// number them.
func roomKind(name string, slots bool, excludes func(h, other *hold) bool) *kind {
	k := &kind{
		name:     name,
		suffixes: []string{mainKey, tokenKey, name + "-queue", name + "-alive", "holds"},
		renewed:  []int{0, 4},
		acquire:  load("line", "room", "room_acquire"),
		leave:    load("line", "room", "room_leave"),
		renew:    load("room_renew"),
		list:     load("line", "room", "room_list"),
		sized:    slots,
		excludes: excludes,
	}
	if slots {
		k.suffixes = append(k.suffixes, "slots")
		k.renewed = append(k.renewed, 5)
	}
	return k
}

// part returns what a contender wants that takes n of the lock's size.
func (k *kind) part(mode string, n, size int) want {
	return want{mode: mode, size: n, args: []any{k.name, size, ""}}
}

// letIn returns w for one that is let in under a holder.
func (w want) letIn(holder *hold) want {
	w.under = holder.id
	w.args = append(w.args[:len(w.args)-1:len(w.args)-1], holder.id)
	return w
}
