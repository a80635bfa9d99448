package truth

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockkeeper/lockkeeper/internal/rawzk"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// words compares the answers to four-letter words: those that are about sessions,
// nodes and watches to the letter, those that are figures by their names.
func (s servers) words(t *testing.T) {
	ask := func(addr string) map[string]string {
		c := watcher(t, addr)
		defer c.Conn.Close()
		answers := map[string]string{}
		for _, w := range []string{"ruok", "isro", "srvr", "stat", "cons", "dump", "wchs", "wchc", "wchp", "conf", "envi", "mntr", "nope", "crst", "srst"} {
			answers[w] = reduce(w, strings.ReplaceAll(word(t, addr, w), fmt.Sprintf("%#x", c.ID), "$session"))
		}
		if _, err := c.Call(int32(zktest.OpCloseSession)); err != nil {
			t.Fatal(err)
		}
		return answers
	}
	want, got := ask(s.real), ask(s.ours)
	for w, answer := range want {
		if w == "mntr" || w == "envi" || w == "conf" { // a real server has many more
			for _, name := range strings.Fields(got[w]) {
				if !slices.Contains(strings.Fields(answer), name) {
					t.Errorf("%s: %s is unknown to the real server", w, name)
				}
			}
			continue
		}
		if got[w] != answer {
			t.Errorf("%s:\n  real: %s\nzktest: %s", w, answer, got[w])
		}
	}
}

// watcher is a client with an ephemeral node, a watch on it and one below.
func watcher(t *testing.T, addr string) *rawzk.Client {
	t.Helper()
	p := &player{t: t, addr: addr, clients: map[string]*client{}, note: newNotes("")}
	c := p.open("a")
	for _, request := range [][]any{
		{zktest.OpCreate, "/words", none, world, ephemeral},
		{zktest.OpGetData, "/words", true},
		{zktest.OpGetChildren, "/words", true},
		{zktest.OpAddWatch, "/words/below", 1},
	} {
		if a, err := c.Call(int32(request[0].(zktest.Op)), request[1:]...); err != nil || a.Code != 0 {
			t.Fatalf("%v: %d, %v", request, a.Code, err)
		}
	}
	return c.Client
}

var (
	figure   = regexp.MustCompile(`[-0-9.]*[0-9]|0x[0-9a-f]+`)
	lastOp   = regexp.MustCompile(`lop=\w+`)
	expiry   = regexp.MustCompile(`(?m)^\d+ expire at .*$`)
	address  = regexp.MustCompile(`/[0-9.]+:\d+`)
	nameOnly = regexp.MustCompile(`(?m)^(\w+)[=\t].*$`)
)

// reduce leaves of an answer what has to agree.
func reduce(w, answer string) string {
	switch w {
	case "mntr", "envi", "conf":
		var names []string
		for _, m := range nameOnly.FindAllStringSubmatch(answer, -1) {
			names = append(names, m[1])
		}
		return strings.Join(names, " ")
	case "srvr", "stat", "cons", "dump":
		_, after, found := strings.Cut(answer, "\n") // the version
		if found && strings.HasPrefix(answer, "Zookeeper version: ") {
			answer = after
		}
		answer = expiry.ReplaceAllString(answer, "# expire at #")
		answer = address.ReplaceAllString(answer, "/#")
		answer = lastOp.ReplaceAllString(answer, "lop=#")
		answer = figure.ReplaceAllString(answer, "#")
		// Of the connections only one is ours: the others come and go.
		fallthrough
	case "wchc", "wchp":
		lines := strings.Split(answer, "\n")
		slices.Sort(lines)
		return strings.Join(slices.Compact(lines), "\n")
	}
	return answer
}
