package member

import "encoding/json"

// A Ticket is what a member's node says about it.
type Ticket struct {
	ID    string `json:"id"` // unique: the node is known by it if the create's answer is lost
	Owner string `json:"owner"`
	Value []byte `json:"value,omitempty"`
}

// Encode returns the node's data.
func (t Ticket) Encode() []byte {
	data, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and bytes
	}
	return data
}

// ParseTicket reads a node's data; what it doesn't understand is empty.
func ParseTicket(data []byte) (t Ticket) {
	if json.Unmarshal(data, &t) != nil {
		return Ticket{}
	}
	return t
}
