package session

import "time"

// A window is the trust window of one life: until when the session is certain
// not to have expired, by our clock.
//
// A session expires one timeout after the leader last heard of it. A request of
// ours makes the server to which we are connected note that the session is
// alive; a follower passes its notes on to the leader with each of the leader's
// pings, every half tick, and they count from when they arrive. So a frame that
// we sent at t, and to which we had the answer by u, was noted by u; and when a
// request that we sent half a tick or more after u is committed, the follower
// has answered a ping of the leader in between, on the same ordered link on which
// it then forwarded that request: the leader heard of the session at t or later.
// What was noted later may have been lost with a follower that is being cut off
// right now. That a frame was sent earlier is not enough: it may have been held
// up on the way and have arrived together with the request. Half a tick is at
// most a quarter of the timeout, since a session lasts at least two ticks. Hence,
// when a request sent at s is committed,
//
//	until = (when the last frame was sent that was answered by s − timeout/4) + timeout − slack
//
// The request by which a connection takes up the session needs no such delay,
// since the leader itself confirms it. But so does a leader that was deposed and
// doesn't know it, so it counts only once a request that was sent on the same
// connection is committed.
//
// A window is not safe for concurrent use.
type window struct {
	timeout time.Duration
	until   time.Time
	proof   time.Time // when the last committed request was sent

	// Of the present connection, thinned out:
	linked time.Time // when it asked for the session
	asked  []frame   // sent and not yet known to have arrived, oldest first
	heard  []frame   // known to have arrived, oldest first
	pings  [2]int32  // how many were sent, and answered
}

// xidPing is the one that all pings have. Their answers come in order.
const xidPing = -2

// A frame is a request that was sent.
type frame struct {
	id             int32 // the xid; of the n-th ping -n
	sent, answered time.Time
}

// open starts the window: the ensemble committed the creation of the session,
// which we asked for at sent.
func (w *window) open(sent time.Time, timeout time.Duration) {
	*w = window{timeout: timeout, linked: sent, until: w.end(sent, timeout), proof: sent}
}

// resume begins anew on another connection, which asked at sent to take up the
// session and got it, with a timeout that may be another than before.
func (w *window) resume(sent time.Time, timeout time.Duration) {
	if until := w.end(sent, timeout); timeout < w.timeout && until.Before(w.until) {
		w.until = until // the leader counts from then on with the new timeout
	}
	w.timeout, w.linked, w.asked, w.heard, w.pings = timeout, sent, nil, nil, [2]int32{}
}

// end is when trust ends if the leader last heard of us at heard. The slack is
// for clocks that don't run at quite the same rate.
func (*window) end(heard time.Time, timeout time.Duration) time.Time {
	return heard.Add(timeout - timeout/20)
}

func (w *window) id(xid int32, way int) int32 {
	if xid != xidPing {
		return xid
	}
	w.pings[way]++
	return -w.pings[way]
}

// wrote notes that a request is sent at t.
func (w *window) wrote(xid int32, t time.Time) {
	id := w.id(xid, 0)
	for _, list := range [][]frame{w.asked, w.heard} {
		if n := len(list); n > 0 && t.Sub(list[n-1].sent) < w.timeout/64 {
			return // an older one is the safer one
		}
	}
	w.asked = append(w.asked, frame{id: id, sent: t})
}

// answered notes that the answer to a request is there at t. A server reads its
// clients' requests in order.
func (w *window) answered(xid int32, t time.Time) {
	id := w.id(xid, 1)
	for i, f := range w.asked {
		if f.id == id {
			f.answered = t
			w.heard = append(w.heard, f)
			w.asked = w.asked[i+1:]
			break
		}
	}
	for len(w.heard) > 0 && t.Sub(w.heard[0].sent) > w.timeout {
		w.heard = w.heard[1:] // can't prove anything any more
	}
}

// committed notes that the ensemble committed a request sent at s, or earlier
// than it was really sent.
func (w *window) committed(s time.Time) {
	if w.timeout == 0 || s.Before(w.linked) {
		return // it went over an earlier connection, for all that we know
	}
	if s.After(w.proof) {
		w.proof = s
	}
	heard := w.linked
	for _, f := range w.heard {
		if s.Sub(f.answered) < w.timeout/4 {
			break
		}
		heard = f.sent
	}
	if until := w.end(heard, w.timeout); until.After(w.until) {
		w.until = until
	}
}

// heartbeat is how often something must be committed while something is held.
func (w *window) heartbeat() time.Duration { return w.timeout / 6 }
