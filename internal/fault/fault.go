// Package fault names known faults of lock libraries, each of which can be put
// into this one, to see that the simulation finds it. Without the build tag
// lockkeeper_faults, which nobody's program has, there are none: Is is constant, and
// the compiler leaves out what depends on it.
package fault

// A Fault is one that was reported of some library, or one of its kind.
type Fault int

const (
	None Fault = iota

	// GrantWithoutNode: whoever waited holds, whether or not its node is still there.
	GrantWithoutNode
	// WakeUpTaken: the event of the node just ahead is taken for the grant.
	WakeUpTaken
	// RevokeWhenTold: a holder gives up only when the server says that the session
	// is over.
	RevokeWhenTold
	// RevokeAfterLoss: the time until a session is given up counts from when the
	// connection was seen to be down.
	RevokeAfterLoss
	// PingsProve: an answer to a ping counts as proof that the session lives.
	PingsProve
	// CountFromReply: the trust window counts from when the answer came.
	CountFromReply
	// CleanUpCancelled: a wait that was cancelled cleans up with the context that
	// ended it.
	CleanUpCancelled
	// RemoveOnce: a deletion without an answer is not repeated.
	RemoveOnce
	// AdoptOwnerless: after a lost answer, the first node that looks right is taken
	// for one's own.
	AdoptOwnerless
	// ReleaseByName: names come again when a directory is made anew, and a lock that
	// was lost is deleted by its name all the same.
	ReleaseByName
	// CreateBlindly: a creation without an answer is repeated without looking.
	CreateBlindly
	// OrderByName: contenders stand in the order of their names.
	OrderByName
	// TokenBySequence: the token is the sequence number.
	TokenBySequence
	// WaitOnMissing: a contender that is gone before it can be watched is waited for
	// all the same.
	WaitOnMissing
	// FreeOnEvent: an event of a holder's node frees its permits.
	FreeOnEvent
	// NoRoomNeeded: contenders of a flow enter the lock's queue as they come.
	NoRoomNeeded
	// DelayOfWitness: only who saw the holder die waits for its lock delay; whoever
	// comes later does not know of it.
	DelayOfWitness
	// OlderCount: how many are in line is believed although it may have been read
	// before the own node was made.
	OlderCount
	// RoundTooSoon: a round goes into a double barrier while the one before is inside.
	RoundTooSoon
	// LeaveOnce: who leaves a double barrier waits for one member only.
	LeaveOnce
	// OldMembers: of a group that is followed, the list is not watched, only the
	// members.
	OldMembers

	// Number is how many there are, with None.
	Number
)
