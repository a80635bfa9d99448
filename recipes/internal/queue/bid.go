package queue

import (
	"crypto/rand"
	"encoding/json"
	"unicode/utf8"
)

// A Bid is what one Acquire asks for.
type Bid struct {
	Keyword Keyword
	Op      string // the operation's name in errors
	Value   []byte // goes into the contender's node
	Try     bool   // do not wait
}

// A ticket is what a contender's node says about it.
type ticket struct {
	ID    string `json:"id"` // unique: the node is known by it if the create's answer is lost
	Owner string `json:"owner"`
	Value []byte `json:"value,omitempty"`
}

func (q *Queue) ticket(value []byte) ticket {
	return ticket{ID: rand.Text(), Owner: q.settings.Owner, Value: value}
}

func (t ticket) encode() []byte {
	data, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and bytes
	}
	return data
}

// parseTicket takes what it does not know for the text of another library.
func parseTicket(data []byte) (t ticket) {
	if json.Unmarshal(data, &t) != nil && utf8.Valid(data) {
		t.Owner = string(data)
	}
	return t
}
