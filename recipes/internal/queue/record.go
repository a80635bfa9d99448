package queue

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A record is what a lock directory's data says. It is text, so that people can
// read it: "lockkeeper mutex dir=3201 released=41". The numbers count only in the
// directory that they were written for: a copy of it begins anew.
//
// It is written by one contender at a time, the one that holds or is first in
// line, in transactions that fail if its node is gone.
type record struct {
	Recipe   string // "" in a directory that somebody else made
	Dir      int64  // czxid of the directory whose numbers these are; 0: there are none
	Released int64  // sequence number of the last holder that released; -1: none
	// Those two matter where holders announce themselves.
	Leader int64 // sequence number of the holder that said so; nobody: none
	Heir   int64 // sequence number of the one that shall be next, if it is there
	// Those below matter for a lock delay.
	Holder int64         // sequence number of the holder that asked for a delay; -1: none
	Delay  time.Duration // how long to keep closed if it died
	Died   bool          // its death was noticed
	Since  int64         // when, in ms of the server's clock; 0: when this was written
	// A lock with slots has its size here, for any directory, and who was admitted.
	// Released is then the last one who was: see slots.go.
	Size  int    // 0: none
	Seats string // as encodeSeats writes them
	// Of the queue in front of another, whose contenders may stand in that one up
	// to a number: see package fair.
	Weight int // 0: none
	// Where the time of holding is shared; see Clock.
	Clock Clock
}

// A Clock says how far the use of a lock has come, for those who share the time
// for which it is held. It is opaque here: see package fair.
type Clock struct {
	Level int64 // what every contender in line had used at the end of the last round
	Low   int64 // the least that one of this round has used; 0: none has released
	Round int64 // sequence number of the last contender of this round
}

const recordMark = "lockkeeper"

// maxDelay is the most that recipes.LockDelay takes: whatever the record says,
// nobody waits longer.
const maxDelay = 24 * time.Hour

// nobody stands for a sequence number where there is none.
const nobody = -1

func newRecord(recipe string) record {
	return record{Recipe: recipe, Released: nobody, Leader: nobody, Heir: nobody, Holder: nobody}
}

// parseRecord reads the data of a directory. ours is false for data that
// somebody else put there, which must not be overwritten. Words that it doesn't
// know are ignored.
func parseRecord(data []byte) (r record, ours bool) {
	r = newRecord("")
	if len(data) == 0 {
		return r, true
	}
	words := strings.Fields(string(data))
	if len(words) < 2 || words[0] != recordMark {
		return r, false
	}
	r.Recipe = words[1]
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		if key == "slots" {
			r.Seats = value
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if key != "died" && (err != nil || n < 0) {
			continue
		}
		switch key {
		case "dir":
			r.Dir = n
		case "released", "admitted":
			r.Released = n
		case "size":
			r.Size = int(n)
		case "weight":
			r.Weight = int(n)
		case "level":
			r.Clock.Level = n
		case "low":
			r.Clock.Low = n
		case "round":
			r.Clock.Round = n
		case "leader":
			r.Leader = n
		case "heir":
			r.Heir = n
		case "holder":
			r.Holder = n
		case "delay":
			r.Delay = time.Duration(min(n, maxDelay.Milliseconds())) * time.Millisecond
		case "died":
			r.Died = true
		case "since":
			r.Since = n
		}
	}
	return r, true
}

func (r record) encode() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", recordMark, r.Recipe)
	if r.Dir > 0 {
		fmt.Fprintf(&b, " dir=%d", r.Dir)
	}
	if r.Size > 0 {
		fmt.Fprintf(&b, " size=%d", r.Size)
	}
	if r.Weight > 0 {
		fmt.Fprintf(&b, " weight=%d", r.Weight)
	}
	if r.Released >= 0 {
		word := "released"
		if r.Size > 0 {
			word = "admitted"
		}
		fmt.Fprintf(&b, " %s=%d", word, r.Released)
	}
	if r.Seats != "" {
		fmt.Fprintf(&b, " slots=%s", r.Seats)
	}
	if r.Leader >= 0 {
		fmt.Fprintf(&b, " leader=%d", r.Leader)
	}
	if r.Heir >= 0 {
		fmt.Fprintf(&b, " heir=%d", r.Heir)
	}
	if r.Holder >= 0 {
		fmt.Fprintf(&b, " holder=%d delay=%d", r.Holder, r.Delay.Milliseconds())
	}
	if r.Died {
		b.WriteString(" died")
	}
	if r.Since > 0 {
		fmt.Fprintf(&b, " since=%d", r.Since)
	}
	if c := r.Clock; c != (Clock{}) {
		fmt.Fprintf(&b, " level=%d low=%d round=%d", c.Level, c.Low, c.Round)
	}
	return []byte(b.String())
}

// in returns what r says in the directory with this czxid.
func (r record) in(czxid int64) record {
	if r.Dir == czxid {
		return r
	}
	n := newRecord(r.Recipe)
	n.Dir, n.Size, n.Weight = czxid, r.Size, r.Weight
	return n
}

// died reports whether a holder that asked for a lock delay left without a
// release, given that nobody before seq is there any more.
func (r record) died(seq int64) bool {
	return r.Holder >= 0 && r.Holder < seq && r.Released < r.Holder
}
