package queue

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A line is a lock directory of readers and writers as the server keeps it, with
// what the contenders know. Those of ours do what waitTurn does with what decide
// says; their reads of the record and their looks at nodes are apart from each
// other, and anything may happen in between.
type line struct {
	t        *rapid.T
	next     int64
	nodes    []Node // there now, in order
	released int64
	ours     map[string]*member
	lists    int
}

type member struct {
	v             view
	watching      Node // "": it has something to do
	saw           Node // was last watched
	granted       bool
	shared        bool
	fresh, stale  bool
	misses, limit int
}

// rwRule is how the rule of the read/write lock reads in one line.
func rwRule(other, self Node) bool { return (other.Alone || self.Alone) && !Shares(other, self) }

// entitled is the model: nobody before n is in its way.
func (l *line) entitled(n Node) bool {
	for _, o := range l.nodes {
		if o.Name == n.Name {
			return true
		}
		if rwRule(o, n) {
			return false
		}
	}
	panic("not there")
}

func (l *line) add(format string, writes bool) Node {
	n := Node{Kind: "read", Seq: l.next, Alone: writes}
	if writes {
		n.Kind = "write"
	}
	n.Name = fmt.Sprintf(format+"-%s-%d", n.Kind, l.next)
	l.next++
	l.nodes = append(l.nodes, n)
	return n
}

func (l *line) arrive(t *rapid.T) {
	n := l.add("o", rapid.Bool().Draw(t, "writes"))
	m := &member{v: newView(n, l.released, rwRule), fresh: true, limit: 1 + rapid.IntRange(0, 3).Draw(t, "limit")}
	m.v.mixed = true
	if len(l.nodes) == 1 {
		m.v.listed = true
	} else {
		m.v.blind = rapid.Bool().Draw(t, "lists first")
	}
	l.ours[n.Name] = m
}

// act has one contender take one step.
func (l *line) act(name string) {
	m := l.ours[name]
	if m.granted || m.watching.Name != "" {
		return
	}
	step, ahead := decide(m.v)
	if m.stale || step == grant && !m.fresh {
		m.v.released = max(m.v.released, l.released)
		m.fresh, m.stale = true, false
		return
	}
	switch step {
	case grant:
		if !l.entitled(m.v.self) {
			l.t.Fatalf("%s is granted, released %d, nodes %v", name, l.released, l.nodes)
		}
		m.granted = true
	case list:
		if l.lists++; !m.v.list(l.nodes) {
			l.t.Fatalf("%s does not find itself", name)
		}
		m.misses, m.fresh = 0, m.v.released == l.released
	case watch:
		if ahead.Name == "" {
			ahead = Node{Name: fmt.Sprintf("o-write-%d", ahead.Seq), Kind: "write", Seq: ahead.Seq, Alone: true}
		}
		if slices.Contains(l.nodes, ahead) {
			m.watching, m.saw = ahead, ahead
			return
		}
		m.v.gone(ahead, m.saw == ahead)
		m.fresh, m.stale = false, ahead.Alone
		if m.misses++; m.v.listed && m.misses >= m.limit {
			m.v.listed, m.v.blind = false, true
		}
	}
}

// remove takes a node away and wakes who watches it.
func (l *line) remove(n Node) {
	l.nodes = slices.DeleteFunc(l.nodes, func(o Node) bool { return o == n })
	delete(l.ours, n.Name)
	for _, m := range l.ours {
		if m.watching == n {
			m.watching = Node{}
			m.misses, m.fresh, m.stale = 0, false, n.Alone
		}
	}
}

func (l *line) some(t *rapid.T, which func(n Node, m *member) bool) (n Node, m *member, ok bool) {
	var some []Node
	for _, n := range l.nodes {
		if which(n, l.ours[n.Name]) {
			some = append(some, n)
		}
	}
	if len(some) == 0 {
		return n, nil, false
	}
	n = rapid.SampledFrom(some).Draw(t, "node")
	return n, l.ours[n.Name], true
}

func (l *line) release(n Node, m *member) {
	switch {
	case n.Alone && m.shared:
		l.released = n.Seq - 1
	case n.Alone:
		l.released = n.Seq
	}
	l.remove(n)
}

func (l *line) settle() {
	for acts := 0; ; acts++ {
		busy := ""
		for name, m := range l.ours { // in random order
			if !m.granted && m.watching.Name == "" {
				busy = name
				break
			}
		}
		if busy == "" {
			return
		}
		if acts > 100*(len(l.nodes)+10) {
			l.t.Fatalf("%s goes round in circles: %+v", busy, l.ours[busy].v)
		}
		l.act(busy)
	}
}

// check: all who may, hold, and whoever waits watches the nearest that is in its
// way.
func (l *line) check() {
	for name, m := range l.ours {
		if m.granted != l.entitled(m.v.self) {
			l.t.Fatalf("%s: granted %v; it watches %q; nodes %v", name, m.granted, m.watching.Name, l.nodes)
		}
		if m.granted {
			continue
		}
		var nearest Node
		for _, o := range l.nodes {
			if o.Name == name {
				break
			}
			if rwRule(o, m.v.self) {
				nearest = o
			}
		}
		if m.watching.Seq != nearest.Seq || !slices.Contains(l.nodes, m.watching) { // there may be several of one number
			l.t.Fatalf("%s watches %s, want %s", name, m.watching.Name, nearest.Name)
		}
	}
}

// case 61, case 62, case 63: readers and writers of ours and of others come,
// release, die, give up and downgrade at random, while those who have something to
// do act at random. Nobody is granted who may not; when all have acted, all who may
// are, and whoever waits watches the nearest one in its way.
func TestReadersAndWritersAgainstModel(t *testing.T) {
	for range 30 { // as many runs as rapid is told to make, each time
		rapid.Check(t, againstModel)
	}
}

func againstModel(t *rapid.T) {
	l := &line{t: t, released: -1, ours: map[string]*member{}}
	holding := func(n Node, m *member) bool { return m != nil && m.granted }
	t.Repeat(map[string]func(*rapid.T){
		"arrive":  l.arrive,
		"arrives": l.arrive,
		"foreign": func(t *rapid.T) { l.add("f", rapid.Bool().Draw(t, "writes")) },
		"foreign goes": func(t *rapid.T) {
			if n, _, ok := l.some(t, func(n Node, m *member) bool { return m == nil }); ok {
				l.remove(n)
			}
		},
		"acts": func(t *rapid.T) {
			if n, _, ok := l.some(t, func(n Node, m *member) bool { return m != nil }); ok {
				l.act(n.Name)
			}
		},
		"releases": func(t *rapid.T) {
			if n, m, ok := l.some(t, holding); ok {
				l.release(n, m)
			}
		},
		"dies": func(t *rapid.T) {
			if n, _, ok := l.some(t, func(n Node, m *member) bool { return m != nil }); ok {
				l.remove(n)
			}
		},
		"lets a reader in": func(t *rapid.T) {
			w, m, ok := l.some(t, func(n Node, m *member) bool { return holding(n, m) && n.Alone })
			if !ok {
				return
			}
			m.shared = true
			r := Node{Name: fmt.Sprint("o", sharing, l.next, "-read"), Kind: "read", Seq: w.Seq}
			l.next++
			i := slices.Index(l.nodes, w)
			l.nodes = slices.Insert(l.nodes, i, r)
			l.ours[r.Name] = &member{v: newView(r, l.released, rwRule), granted: true}
		},
		"number lost": func(t *rapid.T) { l.next++ },
		"all act": func(t *rapid.T) {
			l.settle()
			l.check()
		},
	})
	l.settle()
	l.check()
	for len(l.nodes) > 0 { // let it drain
		n := l.nodes[0]
		if m := l.ours[n.Name]; m != nil {
			l.release(n, m)
		} else {
			l.remove(n)
		}
		l.settle()
		l.check()
	}
}

// Behind n readers, whatever the order in which they leave: no more than one read
// and one watch for each, and log n lists.
func TestListsOfAWriterBehindManyReaders(t *testing.T) {
	const n = 1000
	for name, next := range map[string]func(left int) int{
		"first first": func(left int) int { return 0 },
		"last first":  func(left int) int { return left - 1 },
		"every sixth": func(left int) int { return max(0, left-1-(left*7)%6) },
		"the middle":  func(left int) int { return left / 2 },
	} {
		l := &line{released: -1, ours: map[string]*member{}}
		var readers []Node
		for range n {
			readers = append(readers, l.add("o", false))
		}
		w := l.add("o", true)
		m := &member{v: newView(w, -1, rwRule), fresh: true, limit: missesBeforeList}
		m.v.mixed, m.v.blind = true, true
		l.ours[w.Name] = m
		steps := 0
		for {
			for !m.granted && m.watching.Name == "" {
				lists := l.lists
				l.act(w.Name)
				if l.lists > lists && steps > 0 {
					m.limit *= 2
				}
				steps++
			}
			if len(readers) == 0 {
				break
			}
			i := next(len(readers))
			l.remove(readers[i])
			readers = slices.Delete(readers, i, i+1)
		}
		t.Logf("%s: %d lists, %d steps", name, l.lists, steps)
		if !m.granted || l.lists > 11 || steps > 3*n {
			t.Errorf("%s: granted %v with %d lists in %d steps", name, m.granted, l.lists, steps)
		}
	}
}
