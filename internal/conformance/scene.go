package conformance

import "github.com/lockkeeper/lockkeeper/recipes"

// A scene is a lock on which nobody can follow before one grant ends: that of the
// holder, who may have company that takes up the rest.
type scene struct {
	e       *env
	g       *recipes.Grant
	company []*recipes.Grant
	line    int // holders
	rival   int // the way by which others then have to wait
}

// rival returns a way that doesn't fit beside w, its own if possible, and how many
// more like w must be in before that is so.
func (s Suite) rival(w int) (way, company int) {
	takes := s.Ways[w].Takes
	if 2*takes > s.Size {
		return w, 0
	}
	for r, way := range s.Ways {
		if takes+way.Takes > s.Size {
			return r, 0
		}
	}
	return w, s.Size/takes - 1
}

// hold comes in by way w on l, and keeps others out.
func (e *env) hold(l Lock, w int) *scene {
	e.t.Helper()
	s := &scene{e: e}
	var n int
	s.rival, n = e.s.rival(w)
	if n > 0 {
		others := e.fresh()
		for range n {
			s.company = append(s.company, e.get(others, w))
		}
	}
	s.g = e.get(l, w)
	s.line = n + 1
	e.queued(s.line)
	return s
}

// wait has a rival queue on l, as the n-th behind the holders.
func (s *scene) wait(l Lock, n int) *attempt {
	s.e.t.Helper()
	a := s.e.start(l, s.rival)
	s.e.queued(s.line + n)
	if !a.pending() {
		s.e.t.Fatalf("%s doesn't wait", s.e.s.Ways[s.rival].Name)
	}
	return a
}

// release ends the holder's grant and its company's.
func (s *scene) release() {
	s.e.t.Helper()
	s.e.release(s.g)
	s.part()
}

// part ends the company's.
func (s *scene) part() {
	s.e.t.Helper()
	s.e.release(s.company...)
}
