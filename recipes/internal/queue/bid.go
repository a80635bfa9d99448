package queue

import (
	"crypto/rand"
	"encoding/json"
	"unicode/utf8"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A Bid is what one Acquire asks for.
type Bid struct {
	Keyword Keyword
	Op      string // the operation's name in errors
	Value   []byte // goes into the contender's node
	Slots   int    // of a lock with slots
	Try     bool   // do not wait
}

// A ticket is what a contender's node says about it.
type ticket struct {
	ID    string        `json:"id"` // unique: the node is known by it if the create's answer is lost
	Owner string        `json:"owner"`
	Token recipes.Token `json:"token,omitempty"` // where it is not the node's czxid
	Value []byte        `json:"value,omitempty"`
	// Of a lock with slots: how many it asks for, and which it got, as encodeSlots
	// writes them.
	Permits int    `json:"permits,omitempty"`
	Slots   string `json:"slots,omitempty"`
}

func (q *Queue) ticket(b Bid) ticket {
	return ticket{ID: rand.Text(), Owner: q.settings.Owner, Value: b.Value, Permits: b.Slots}
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
