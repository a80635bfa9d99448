package session

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A model of what a window is about: a client that talks to one follower after
// the other, each of which tells the leader, at the leader's pings, that the
// session is alive. The last follower is cut off from the leader at a random
// moment. All links keep their order; the delay between client and follower
// varies, that between follower and leader does not.
type model struct {
	rnd     *rand.Rand
	timeout time.Duration
	tick    time.Duration
	xid     int32

	touches []touch // the leader's
	events  []event // the client's
}

// A touch is when the leader hears of the session.
type touch struct {
	at      time.Duration
	timeout time.Duration
}

// An event is what the client lets its window know.
type event struct {
	at time.Duration
	do func(*window)
}

var origin = time.Now()

func clock(d time.Duration) time.Time { return origin.Add(d) }

// upTo is often 0 or the limit, where mistakes show.
func (m *model) upTo(limit time.Duration) time.Duration {
	switch m.rnd.IntN(4) {
	case 0:
		return 0
	case 1:
		return limit
	}
	return time.Duration(m.rnd.Int64N(int64(limit) + 1))
}

func (m *model) touched(at time.Duration) {
	m.touches = append(m.touches, touch{at, m.timeout})
}

func (m *model) tell(at time.Duration, do func(*window)) {
	m.events = append(m.events, event{at, do})
}

// connection plays one connection from its connect request at start on, and
// returns when the client gave it up. A leader that was deposed without knowing
// it confirms the session, too, but what it hears counts for nothing.
func (m *model) connection(start time.Duration, first, deposed bool) time.Duration {
	link := m.upTo(m.timeout / 10) // between follower and leader
	arrived := start + m.upTo(m.timeout/10)
	now := arrived + 2*link + m.upTo(m.timeout/10)
	granted := m.timeout
	if first {
		m.touched(start) // at the earliest
		m.tell(now, func(w *window) { w.open(clock(start), granted) })
	} else {
		if !deposed {
			m.touched(arrived + link)
		}
		m.tell(now, func(w *window) { w.resume(clock(start), granted) })
	}

	end := now + time.Duration(m.rnd.Int64N(int64(3*m.timeout)))
	frames := m.frames(now, arrived, end)
	cut := end // between follower and leader; at its worst right after a write
	if n := len(frames); n > 0 {
		cut = frames[m.rnd.IntN(n)].arrived + link + m.upTo(time.Nanosecond)
	}
	replied := now
	for _, f := range frames {
		ready := f.arrived
		if f.write {
			if ready += link; ready >= cut || deposed {
				continue // no answer ever
			}
			ready += link
		}
		replied = max(replied, ready+m.upTo(m.timeout/2))
		if at := replied; at < end {
			m.tell(at, func(w *window) { w.answered(f.xid, clock(at)) })
		} else {
			break
		}
		if f.write {
			asked := clock(f.sent - m.upTo(m.timeout/10))
			m.tell(replied+m.upTo(m.timeout/2), func(w *window) { w.committed(asked) })
		}
	}

	// The follower has noted what arrived before a ping, and says so.
	for ping := start + m.upTo(m.tick/2); ping < cut-link && !deposed; ping += m.tick / 2 {
		noted := func(f packet) bool { return f.arrived < ping && f.arrived >= ping-m.tick/2 }
		if slices.ContainsFunc(frames, noted) {
			m.touched(ping + link)
		}
	}
	return end
}

// A packet is a frame on its way to the follower.
type packet struct {
	xid           int32
	write         bool // else a ping
	sent, arrived time.Duration
}

// frames are those that reach the follower before the connection ends.
func (m *model) frames(now, arrived, end time.Duration) (list []packet) {
	for range m.rnd.IntN(40) {
		now += m.upTo(m.timeout / 3)
		m.xid++
		f := packet{xid: m.xid, write: m.rnd.IntN(2) == 0, sent: now}
		if !f.write {
			f.xid = -2
		}
		arrived = max(arrived, now+m.upTo(m.timeout/2))
		f.arrived = arrived
		if now < end {
			m.tell(now, func(w *window) { w.wrote(f.xid, clock(f.sent)) })
		}
		if arrived < end {
			list = append(list, f)
		}
	}
	return list
}

// The window never lasts longer than the session, whatever happens on the way.
func TestWindowEndsBeforeTheSession(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		reconnections := rapid.IntRange(0, 2).Draw(t, "reconnections")
		for i := range uint64(40) {
			m := &model{rnd: rand.New(rand.NewPCG(seed, i)), timeout: 1000 * time.Millisecond}
			if until, expiry := m.play(reconnections); until.After(clock(expiry)) {
				t.Fatalf("model %d: trusted until %v: the session expired at %v", i, until.Sub(origin), expiry)
			}
		}
	})
}

// play returns until when the client trusts its session at last, and when the
// leader ends it.
func (m *model) play(reconnections int) (until time.Time, expiry time.Duration) {
	m.tick = max(time.Millisecond, m.upTo(m.timeout/2))
	end := m.connection(0, true, false)
	for range reconnections {
		if m.rnd.IntN(4) == 0 {
			m.timeout = max(2*m.tick, m.upTo(2*m.timeout))
		}
		end = m.connection(end+m.upTo(m.timeout/2), false, m.rnd.IntN(4) == 0)
	}
	slices.SortStableFunc(m.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	var w window
	for _, e := range m.events {
		e.do(&w)
	}
	last := slices.MaxFunc(m.touches, func(a, b touch) int { return cmp.Compare(a.at, b.at) })
	return w.until, last.at + last.timeout
}

// With heartbeats that are answered soon the window stays wide open.
func TestWindowStaysOpenWithHeartbeats(t *testing.T) {
	const T = 10 * time.Second
	var w window
	w.open(clock(0), T)
	xid := int32(0)
	for at := w.heartbeat(); at < 100*T; at += w.heartbeat() {
		xid++
		if left := w.until.Sub(clock(at)); left < T/4 {
			t.Fatalf("at %v only %v are left", at, left)
		}
		w.wrote(xid, clock(at))
		w.answered(xid, clock(at+T/100))
		w.committed(clock(at))
	}
	if n := len(w.heard) + len(w.asked); n > 70 {
		t.Errorf("%d frames remembered", n)
	}
}

// However much is sent, what is remembered is bounded, and so is what a proof
// loses by the thinning.
func TestWindowUnderLoad(t *testing.T) {
	const T = 10 * time.Second
	var w window
	w.open(clock(0), T)
	for i := range int32(100_000) {
		at := clock(time.Duration(i) * time.Millisecond)
		w.wrote(i, at)
		w.answered(i, at)
		w.committed(at)
		if left := w.until.Sub(at); left < T-T/4-T/20-T/64-time.Millisecond {
			t.Fatalf("%v left", left)
		}
	}
	if n := len(w.heard) + len(w.asked); n > 70 {
		t.Errorf("%d frames remembered", n)
	}
	if cap(w.heard) > 1000 {
		t.Errorf("room for %d frames", cap(w.heard))
	}
}
