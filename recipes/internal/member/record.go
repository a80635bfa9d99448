package member

import (
	"fmt"
	"strconv"
	"strings"
)

// A Record is what the directory's data says. It is text, as in the locks'
// directories: "lockkeeper barrier size=3 dir=3201 from=-1 open=2".
type Record struct {
	Recipe string
	Size   int64 // of a double barrier
	// The members with numbers after From, up to Open, are those of the round that
	// was let through last. They count only in the directory that they were
	// written for: a copy of it begins anew.
	Dir        int64
	From, Open int64
}

const mark = "lockkeeper"

// NewRecord is that of a directory in which nothing has happened.
func NewRecord(recipe string, size int64) Record {
	return Record{Recipe: recipe, Size: size, From: -1, Open: -1}
}

// Encode returns the directory's data.
func (r Record) Encode() []byte {
	s := mark + " " + r.Recipe
	if r.Size > 0 {
		s += fmt.Sprintf(" size=%d", r.Size)
	}
	if r.Dir > 0 {
		s += fmt.Sprintf(" dir=%d from=%d open=%d", r.Dir, r.From, r.Open)
	}
	return []byte(s)
}

// parseRecord reads the data of the directory with this czxid. ours is false for
// what somebody else put there.
func parseRecord(data []byte, czxid int64) (r Record, ours bool) {
	words := strings.Fields(string(data))
	if len(words) < 2 || words[0] != mark {
		return r, false
	}
	r = NewRecord(words[1], 0)
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			continue
		}
		switch key {
		case "size":
			r.Size = n
		case "dir":
			r.Dir = n
		case "from":
			r.From = n
		case "open":
			r.Open = n
		}
	}
	if r.Dir != czxid {
		r.Dir, r.From, r.Open = czxid, -1, -1
	}
	return r, true
}
