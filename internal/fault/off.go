//go:build !lockkeeper_faults

package fault

// Is reports whether this fault is in.
func Is(Fault) bool { return false }
