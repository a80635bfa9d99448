package conformance

import (
	"github.com/lockkeeper/lockkeeper/recipes"
)

var contenderChecks = []check{
	{
		name:    "Contenders",
		promise: "Contenders lists holders and waiters in queue order: who they are, since when, with which token, who holds, and which are one's own",
		needs:   []Capability{Contenders},
		way:     contenders,
	},
}

func contenders(e *env, w int) {
	a, b := e.Client(), e.Client()
	la, lb := e.on(a, recipes.Owner("anna")), e.on(b, recipes.Owner("bob"))
	e.list(la) // before the lock was ever used
	s := e.hold(la, w)
	second := s.wait(lb, 1)
	third := s.wait(la, 2)
	e.list(lb, want{owner: "anna", holding: true}, want{owner: "bob", mine: true}, want{owner: "anna"})
	list := e.list(la, want{owner: "anna", holding: true, mine: true}, want{owner: "bob"}, want{owner: "anna", mine: true})
	if e.s.has(Tokens) && list[0].Token != s.g.Token() {
		e.t.Errorf("listed with token %v, granted with %v", list[0].Token, s.g.Token())
	}
	s.release()
	if !e.s.has(Order) {
		e.letIn(second, third)
		return
	}
	g := second.grant()
	if e.s.has(Tokens) && list[1].Token != 0 && list[1].Token != g.Token() {
		e.t.Errorf("listed with token %v, granted with %v", list[1].Token, g.Token())
	}
	e.release(g)
	e.release(third.grant())
	e.empty()
	e.list(la)
}

type want struct {
	owner         string
	holding, mine bool
}

// list returns the contenders with an owner that the test has named, who must be
// the ones wanted. Company comes before them.
func (e *env) list(l Lock, wants ...want) []recipes.Contender {
	e.t.Helper()
	all, err := l.Contenders(e.context())
	if err != nil {
		e.t.Fatalf("contenders: %v", err)
	}
	ids := map[string]bool{}
	var named []recipes.Contender
	for i, c := range all {
		if c.ID == "" || ids[c.ID] || c.Kind == "" || c.Since.IsZero() {
			e.t.Errorf("%d: %+v: an ID that is missing or not unique, or no kind or time", i, c)
		}
		ids[c.ID] = true
		if i > 0 && c.Since.Before(all[i-1].Since) {
			e.t.Errorf("%d: since %v, but behind one since %v", i, c.Since, all[i-1].Since)
		}
		if c.Owner == "anna" || c.Owner == "bob" {
			named = append(named, c)
		} else if !c.Holding || c.Mine {
			e.t.Errorf("%d: %+v: company holds, and is somebody else's", i, c)
		}
	}
	if len(named) != len(wants) {
		e.t.Fatalf("contenders %+v, want %+v", named, wants)
	}
	for i, c := range named {
		if c.Owner != wants[i].owner || c.Holding != wants[i].holding || c.Mine != wants[i].mine {
			e.t.Errorf("%d: %+v, want %+v", i, c, wants[i])
		}
	}
	return named
}
