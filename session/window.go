package session

import "time"

// A window is the trust window of one life: until when the session is certain
// not to have expired, by our clock.
//
// A session expires one timeout after the leader last heard of it. Requests of
// the client make the server to which it is connected note that the session is
// alive; a follower passes such notes on to its leader with each of the leader's
// pings, every half tick, and they count from when they arrive. So when a request
// sent at s is committed, the leader has certainly heard of what we sent half a
// tick or more before s: the follower answered a ping of the leader since, on
// the same ordered link on which it then forwarded the request. What we sent
// later may still be waiting in a follower that is being cut off right now. Half
// a tick is at most a quarter of the timeout, since a session lasts at least two
// ticks. Hence
//
//	until = (last frame sent at or before s − timeout/4) + timeout − slack
//
// A connection that was cut loses frames that were sent on it, but then the
// reconnection, which the leader confirms, came after them.
//
// A window is not safe for concurrent use.
type window struct {
	timeout time.Duration
	frames  []time.Time // when something was sent, oldest first, thinned out
	until   time.Time
	proof   time.Time // when the last committed request was sent
}

// open starts the window: the ensemble committed the creation of the session,
// which we asked for at sent.
func (w *window) open(sent time.Time, timeout time.Duration) {
	*w = window{timeout: timeout, frames: []time.Time{sent}, until: sent.Add(timeout - timeout/20), proof: sent}
}

// wrote notes that a frame was sent at t.
func (w *window) wrote(t time.Time) {
	if w.timeout == 0 || t.Sub(w.frames[len(w.frames)-1]) < w.timeout/64 {
		return // an older time is the safer one
	}
	w.frames = append(w.frames, t)
	// Keep one that is old enough for the next proof, nothing older.
	old := 0
	for old+1 < len(w.frames) && t.Sub(w.frames[old+1]) >= w.timeout/4 {
		old++
	}
	if old > 16 {
		w.frames = append(w.frames[:0], w.frames[old:]...)
	}
}

// committed notes that the ensemble committed a request sent at s.
func (w *window) committed(s time.Time) {
	if w.timeout == 0 {
		return
	}
	if s.After(w.proof) {
		w.proof = s
	}
	heard := w.frames[0]
	for _, t := range w.frames[1:] {
		if s.Sub(t) < w.timeout/4 {
			break
		}
		heard = t
	}
	if until := heard.Add(w.timeout - w.timeout/20); until.After(w.until) {
		w.until = until
	}
}

// heartbeat is how often something must be committed while something is held.
func (w *window) heartbeat() time.Duration { return w.timeout / 6 }
