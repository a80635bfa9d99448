//go:build lockkeeper_faults

package fault

import "sync/atomic"

var current atomic.Int32

// Is reports whether this fault is in.
func Is(f Fault) bool { return Fault(current.Load()) == f }

// Inject puts one fault in, in the place of the one before; None takes it out.
func Inject(f Fault) { current.Store(int32(f)) }
