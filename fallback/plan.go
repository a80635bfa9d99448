package fallback

import "time"

// When holds are renewed. All that have the same TTL have the same beat, a third of the
// window of their trust, and each is renewed once with every beat: so they go together,
// in scripts that are full, however they were taken, and from the first beat on.
//
// Off the beat comes only what can't wait for it. Never is more than half of the trust
// that is left spent waiting, neither for the beat nor for an answer: a renewal only
// ever prolongs what is still held, so it may be sent again while the first is on its
// way, but whoever did so early would double the load of a server that is slow because
// of it. What has failed is tried again with the next of the four steps of a beat. The
// steps, too, are common, so that what was sent together is repeated together.

// stepsPerBeat is into how many steps the beat is divided.
const stepsPerBeat = 4

func (h *hold) beat() time.Duration { return trustFor(stamp{}, h.l.cfg.ttl).window / 3 }

func (h *hold) step() time.Duration { return h.beat() / stepsPerBeat }

// after returns the first multiple of unit after t, counted from the epoch.
func (r *renewer) after(t time.Time, unit time.Duration) time.Time {
	return r.epoch.Add((t.Sub(r.epoch)/unit + 1) * unit)
}

// planNext plans the next renewal of a hold, which was just granted or renewed.
func (r *renewer) planNext(h *hold) {
	now, left := time.Now(), h.trustLeft()
	if h.l.cfg.fixed {
		r.lookBy(now.Add(left))
		return
	}
	h.at = r.after(now, h.beat())
	if limit := r.planRepeat(h, now, left); limit.Before(h.at) {
		h.at = limit // it was granted on a claim, or the answer took long
	}
	r.lookBy(h.at)
}

// planRepeat returns when a renewal that begins now is sent again without an answer: at
// the last step before half of what is left has passed.
func (r *renewer) planRepeat(h *hold, now time.Time, left time.Duration) time.Time {
	half := now.Add(left / 2)
	if step := r.after(half, h.step()).Add(-h.step()); step.After(now) {
		return step
	}
	return half
}

// planRetry plans the next renewal of holds of which one has failed.
func (r *renewer) planRetry(holds ...*hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range holds {
		h.at = r.after(time.Now(), h.step())
		r.lookBy(h.at)
	}
}

// lookBy has the loop look at that time, or before.
func (r *renewer) lookBy(at time.Time) {
	if at.Before(r.at) {
		r.at = at
		r.nudge()
	}
}
