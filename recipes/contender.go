package recipes

import "time"

// A Contender is one request for a lock, as it can be seen from outside: the
// holder, or one that waits. Lists of contenders are in the order of the queue
// and are true of one moment only.
type Contender struct {
	Owner   string    // as given by [Owner]; what other libraries wrote, where it is text
	Token   Token     // the token that it has, or will have once it holds
	Since   time.Time // when it queued, by the server's clock
	Kind    string    // "lock", "read", "write", …
	Holding bool      // it holds the lock
	Mine    bool      // it belongs to the session or client that was asked
	ID      string    // names it on the server: the node's name, or the client's request

	// Of a lock with slots: how many it asks for, and those that it has.
	Permits int
	Slots   []int

	Flow string // of a fair lock with flows: which one it belongs to
}
