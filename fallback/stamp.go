package fallback

import "time"

// A stamp is a moment, by two clocks, of which we ask later how long ago it was.
type stamp struct{ mono, wall time.Time }

func stamped() stamp {
	now := time.Now()
	return stamp{now, now.Round(0)}
}

// suspended is by how much the wall clock must have gone ahead of the monotonic one
// before we believe it: Linux stops the latter while a machine is suspended. A clock
// that was set forward looks the same; then trust ends early, which is safe.
const suspended = time.Second

func (s stamp) elapsed() time.Duration {
	now := stamped()
	return longer(now.mono.Sub(s.mono), now.wall.Sub(s.wall))
}

// longer says how long it was by what the two clocks say.
func longer(mono, wall time.Duration) time.Duration {
	if wall > mono+suspended {
		return wall
	}
	return mono
}

// trust is how long a hold may be believed that the server gave for ttl in answer to
// a request sent at that time: less what the two clocks may differ in rate, and the
// granularity of the server's (the drift of redis.io's Redlock).
type trust struct {
	sent   stamp
	window time.Duration
}

func trustFor(sent stamp, ttl time.Duration) trust {
	return trust{sent, ttl - ttl/100 - 2*time.Millisecond}
}

func (t trust) remaining() time.Duration { return t.window - t.sent.elapsed() }
