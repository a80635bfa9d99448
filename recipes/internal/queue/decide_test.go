package queue

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func everybody(other, self Node) bool { return true }
func writers(other, self Node) bool   { return other.Kind == "write" || self.Kind == "write" }

func seqs(ns ...int64) (out []Node) {
	for _, n := range ns {
		out = append(out, Node{Name: fmt.Sprint("n", n), Kind: "lock", Seq: n})
	}
	return out
}

func TestDecide(t *testing.T) {
	self := Node{Name: "n5", Kind: "lock", Seq: 5}
	for name, c := range map[string]struct {
		v    view
		want step
		seq  int64 // of the one to watch
	}{
		"the first of all":          {newView(Node{Seq: 0}, -1, everybody), grant, 0},
		"the one before released":   {newView(self, 4, everybody), grant, 0},
		"an earlier one released":   {newView(self, 3, everybody), watch, 4},
		"nobody released yet":       {newView(self, -1, everybody), watch, 4},
		"those between are gone":    {view{self: self, rule: everybody, released: 2, goneFrom: 3}, grant, 0},
		"one of those is left":      {view{self: self, rule: everybody, released: 1, goneFrom: 3}, watch, 2},
		"no name to compute":        {view{self: self, rule: everybody, released: 3, goneFrom: 5, blind: true}, list, 0},
		"blind, but released since": {view{self: self, rule: everybody, released: 4, goneFrom: 5, blind: true}, grant, 0},
		"listed, alone":             {view{self: self, rule: everybody, released: -1, goneFrom: 5, listed: true}, grant, 0},
		"listed, two ahead":         {view{self: self, rule: everybody, released: -1, goneFrom: 5, listed: true, ahead: seqs(1, 3)}, watch, 3},
		"listed, released since":    {view{self: self, rule: everybody, released: 3, goneFrom: 5, listed: true, ahead: seqs(1, 3)}, grant, 0},
		"reader behind readers": {view{self: Node{Seq: 5, Kind: "read"}, rule: writers, released: -1, goneFrom: 5, listed: true,
			ahead: []Node{{Seq: 1, Kind: "read"}, {Seq: 2, Kind: "read"}}}, grant, 0},
		"reader behind a writer": {view{self: Node{Seq: 5, Kind: "read"}, rule: writers, released: -1, goneFrom: 5, listed: true,
			ahead: []Node{{Seq: 1, Kind: "write"}, {Seq: 2, Kind: "read"}}}, watch, 1},
		"writer behind a reader": {view{self: Node{Seq: 5, Kind: "write"}, rule: writers, released: -1, goneFrom: 5, listed: true,
			ahead: []Node{{Seq: 2, Kind: "read"}}}, watch, 2},
	} {
		if got, n := decide(c.v); got != c.want || got == watch && n.Seq != c.seq {
			t.Errorf("%s: %v %+v, want %v %d", name, got, n, c.want, c.seq)
		}
	}
}

func TestViewTakesInAList(t *testing.T) {
	v := newView(Node{Name: "n5", Seq: 5}, -1, everybody)
	if v.list(seqs(9, 3, 7)) {
		t.Error("our own node is not there")
	}
	if !v.list(append(seqs(9, 3, 5, 1, 7), Node{Name: "m5", Seq: 5})) {
		t.Error("our own node is there")
	}
	var names []string
	for _, n := range v.ahead {
		names = append(names, n.Name)
	}
	if !slices.Equal(names, []string{"n1", "n3", "m5"}) {
		t.Errorf("ahead: %q", names)
	}
	v.gone(Node{Name: "n3", Seq: 3}, true)
	v.gone(Node{Name: "m5", Seq: 5}, true)
	if got, n := decide(v); got != watch || n.Name != "n1" {
		t.Errorf("%v %+v", got, n)
	}
}

// A lock directory as the server keeps it, and the contenders with their views.
type model struct {
	t        *rapid.T
	next     int64
	nodes    []Node // there now, in order
	released int64
	waiting  map[int64]*contenderModel
	holder   int64 // of ours; -1: none
}

type contenderModel struct {
	v      view
	seen   string // the one that was last watched and there
	looked bool   // it waits for a node that is there
}

// TestDecideAgainstModel lets contenders of ours and of others come, release, die
// and be granted at random. Ours do what waitTurn does with what decide says. At
// no time are two granted, or one while another library's is ahead; nobody waits
// for a node that is not there; in the end nobody is left waiting.
func TestDecideAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, released: -1, holder: -1, waiting: map[int64]*contenderModel{}}
		t.Repeat(map[string]func(*rapid.T){
			"arrive":        func(t *rapid.T) { m.arrive() },
			"arrive late":   func(t *rapid.T) { m.arriveWithOldRecord(t) },
			"foreign":       func(t *rapid.T) { m.nodes = append(m.nodes, m.number("f%d", "foreign")) },
			"foreign goes":  func(t *rapid.T) { m.removeAny(t, func(n Node) bool { return n.Kind == "foreign" }) },
			"waiter dies":   func(t *rapid.T) { m.removeAny(t, func(n Node) bool { return n.Kind == "lock" && n.Seq != m.holder }) },
			"holder leaves": func(t *rapid.T) { m.leave(rapid.Bool().Draw(t, "releases")) },
			"number lost":   func(t *rapid.T) { m.next++ }, // its node came and went unseen
			"":              func(t *rapid.T) { m.check() },
		})
		for range len(m.nodes) + 1 { // let it drain
			m.removeAny(t, func(n Node) bool { return n.Kind == "foreign" })
			m.leave(true)
		}
		if len(m.waiting) > 0 {
			t.Fatalf("%d wait for ever; nodes %v", len(m.waiting), m.nodes)
		}
	})
}

func (m *model) number(format, kind string) Node {
	n := Node{Name: fmt.Sprintf(format, m.next), Kind: kind, Seq: m.next}
	m.next++
	return n
}

func (m *model) arrive() {
	n := m.number("o%d", "lock")
	m.nodes = append(m.nodes, n)
	m.waiting[n.Seq] = &contenderModel{v: newView(n, m.released, everybody)}
	m.settle()
}

// arriveWithOldRecord reads the record, and then things go on before it decides.
func (m *model) arriveWithOldRecord(t *rapid.T) {
	n := m.number("o%d", "lock")
	m.nodes = append(m.nodes, n)
	c := &contenderModel{v: newView(n, m.released, everybody)}
	m.leave(rapid.Bool().Draw(t, "releases"))
	m.waiting[n.Seq] = c
	m.settle()
}

func (m *model) removeAny(t *rapid.T, which func(Node) bool) {
	var some []Node
	for _, n := range m.nodes {
		if which(n) {
			some = append(some, n)
		}
	}
	if len(some) > 0 {
		m.remove(rapid.SampledFrom(some).Draw(t, "node"))
	}
}

func (m *model) leave(releases bool) {
	if m.holder < 0 {
		return
	}
	if releases {
		m.released = m.holder
	}
	n := Node{Name: fmt.Sprintf("o%d", m.holder)}
	m.holder = -1
	m.remove(n)
}

// remove takes a node away, and whoever watched it looks again.
func (m *model) remove(n Node) {
	m.nodes = slices.DeleteFunc(m.nodes, func(o Node) bool { return o.Name == n.Name })
	for seq, c := range m.waiting {
		if c.v.self.Name == n.Name {
			delete(m.waiting, seq)
		}
		if c.seen == n.Name {
			c.looked = false
			c.v.released = max(c.v.released, m.released)
		}
	}
	m.settle()
}

func (m *model) there(name string) bool {
	return slices.ContainsFunc(m.nodes, func(n Node) bool { return n.Name == name })
}

// settle has everybody act until all wait.
func (m *model) settle() {
	for seq, c := range m.waiting {
		for steps := 0; !c.looked; steps++ {
			if steps > 3*int(m.next)+10 {
				m.t.Fatalf("%d goes round in circles: %+v", seq, c.v)
			}
			switch step, n := decide(c.v); step {
			case grant:
				if m.holder >= 0 || m.nodes[0].Seq != seq {
					m.t.Fatalf("%d is granted; held by %d, nodes %v", seq, m.holder, m.nodes)
				}
				m.holder = seq
				delete(m.waiting, seq)
				c.looked = true
			case list:
				if !c.v.list(m.nodes) {
					m.t.Fatalf("%d does not find itself", seq)
				}
				c.v.released = max(c.v.released, m.released)
			case watch:
				if n.Name == "" {
					n.Name = fmt.Sprintf("o%d", n.Seq)
				}
				if m.there(n.Name) {
					c.seen, c.looked = n.Name, true
				} else {
					c.v.gone(n, c.seen == n.Name)
					c.v.released = max(c.v.released, m.released)
				}
			}
		}
	}
}

// check: everybody who waits waits for the nearest one ahead, which is there.
func (m *model) check() {
	for seq, c := range m.waiting {
		i := slices.IndexFunc(m.nodes, func(n Node) bool { return n.Seq == seq })
		if i == 0 {
			m.t.Fatalf("%d waits for %s, though it is first of %v", seq, c.seen, m.nodes)
		}
		if ahead := m.nodes[i-1].Name; c.seen != ahead {
			m.t.Fatalf("%d watches %s, the nearest ahead is %s", seq, c.seen, ahead)
		}
	}
}
