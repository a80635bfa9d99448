package zktest

import "time"

// alarm is a timer that Close can wait for.
type alarm struct {
	s     *Server
	due   time.Time
	timer *time.Timer
}

// after calls f, with the server locked, when d has passed. It is called with
// the server locked and not closed.
func (s *Server) after(d time.Duration, f func()) *alarm {
	s.wg.Add(1)
	a := &alarm{s: s, due: time.Now().Add(d)}
	s.alarms[a] = struct{}{}
	a.timer = time.AfterFunc(d, func() {
		defer s.wg.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, set := s.alarms[a]; !set {
			return // stopped when it was too late to stop the timer
		}
		delete(s.alarms, a)
		f()
		s.stirred()
	})
	return a
}

// stop is called with the server locked.
func (a *alarm) stop() {
	delete(a.s.alarms, a)
	if a.timer.Stop() {
		a.s.wg.Done()
	}
}
