package recipes

import "errors"

// What a caller can test for, with errors.Is.
var (
	// ErrBusy: TryLock and its kin found the lock held, waited for, or closed
	// by a [LockDelay].
	ErrBusy = errors.New("held by another")

	// ErrReleased: the grant ended because its holder released it.
	ErrReleased = errors.New("released")

	// ErrRevoked: the grant ended although nobody released it. The reason is
	// one of those below, in the same chain.
	ErrRevoked = errors.New("revoked")

	// ErrDeadlock: the context comes from a live grant of the same lock, so
	// waiting would never end. The option [Reentrant] asks for a nested grant
	// instead.
	ErrDeadlock = errors.New("already held by this call chain")

	// ErrUpgrade: the context comes from a read grant, and two readers that
	// both wait to write would wait for each other.
	ErrUpgrade = errors.New("a read lock can't become a write lock")

	// ErrConflict: the path is used in a way that excludes this one: by another
	// recipe, or by the same one with other parameters.
	ErrConflict = errors.New("path is used by another recipe, or with other parameters")

	// ErrExhausted: the path's sequence counter is near its end. It starts anew
	// by itself once the queue has drained.
	ErrExhausted = errors.New("sequence counter of the path is nearly used up until its queue drains")

	// ErrPermission: the service refused for lack of permission. It is final:
	// nothing was retried, and nothing is left behind.
	ErrPermission = errors.New("permission denied")

	// ErrInvalid: an argument can't be right. Nothing was sent.
	ErrInvalid = errors.New("invalid argument")
)

// The reasons inside ErrRevoked. The first four also end a wait that
// [FailOnLoss] forbids to begin again.
var (
	// ErrSessionLost: the session ended, or could be trusted no longer.
	ErrSessionLost = errors.New("session lost")

	// ErrSuspended: the connection went down, and the strict policy counts that
	// as a loss.
	ErrSuspended = errors.New("connection suspended")

	// ErrSessionClosed: the program closed the session or client.
	ErrSessionClosed = errors.New("session closed")

	// ErrNodeDeleted: somebody removed what stood for the grant on the server.
	ErrNodeDeleted = errors.New("removed on the server")

	// ErrHeldTooLong: the grant reached its [MaxHold].
	ErrHeldTooLong = errors.New("held for longer than its maximum")
)

// An Error says which operation failed on which lock. Use errors.Is and
// errors.As to look inside.
type Error struct {
	Op   string // "lock", "trylock", "release", "verify", …
	Path string // the lock
	// Reason is why the operation stopped: one of this package's errors,
	// context.Cause of the caller's context, or what the service said.
	Reason error
	// LastErr is what last went wrong on the way, where that is not the reason:
	// for example the connection error that a deadline cut short. May be nil.
	LastErr error
}

// Error returns "op path: reason (last: …)".
func (e *Error) Error() string {
	s := "lockkeeper: " + e.Op + " " + e.Path + ": " + e.Reason.Error()
	if e.LastErr != nil {
		s += " (last: " + e.LastErr.Error() + ")"
	}
	return s
}

// Unwrap returns the reason and the last error.
func (e *Error) Unwrap() []error {
	if e.LastErr == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.LastErr}
}
