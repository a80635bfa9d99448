package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// A Bid is what one Acquire asks for.
type Bid struct {
	Keyword Keyword
	Op      string // the operation's name in errors
	Value   []byte // goes into the contender's node
	Slots   int    // of a lock with slots
	Try     bool   // do not wait

	// Of package fair; these go into the contender's node. Request is the same for two
	// places of one contender.
	Flow, Request string
	// What follows may be nil. AtRelease is called when the lock is released after
	// it was held for a time; it returns what becomes of the record's clock, and
	// operations that go with the release where the server does not refuse them.
	// Beside reads what AtRelease wants to know, after whoever held before has gone.
	// Noticed is called, from the goroutine that waits, when something has happened
	// to one ahead.
	AtRelease func(held time.Duration, t Turn) (Clock, []any)
	Beside    func(ctx context.Context, life *session.Life) error
	Noticed   func()
}

// A Turn is what a holder knows of the queue when it releases.
type Turn struct {
	Seq  int64 // its own sequence number
	Last int64 // that of the last in line when its turn came, or a later one
	Clock
}

// A ticket is what a contender's node says about it.
type ticket struct {
	ID    string        `json:"id"` // unique: the node is known by it if the create's answer is lost
	Owner string        `json:"owner"`
	Token recipes.Token `json:"token,omitempty"` // where it is not the node's czxid
	Value []byte        `json:"value,omitempty"`
	// Of a lock with flows.
	Flow    string `json:"flow,omitempty"`
	Request string `json:"request,omitempty"`
	// Of a lock with slots: how many it asks for, and which it got, as encodeSlots
	// writes them.
	Permits int    `json:"permits,omitempty"`
	Slots   string `json:"slots,omitempty"`
}

func (q *Queue) ticket(b Bid) ticket {
	return ticket{ID: rand.Text(), Owner: q.settings.Owner, Value: b.Value, Flow: b.Flow, Request: b.Request, Permits: b.Slots}
}

func (t ticket) encode() []byte {
	data, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings, bytes and numbers
	}
	return data
}

// parseTicket takes what it does not know for the text of another library.
func parseTicket(data []byte) (t ticket) {
	if json.Unmarshal(data, &t) == nil && t.ID != "" {
		return t
	}
	if !utf8.Valid(data) {
		return ticket{}
	}
	return ticket{Owner: string(data)} // another library's
}
