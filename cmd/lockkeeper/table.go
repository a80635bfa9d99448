package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes/inspect"
)

// A column has a cell for each contender; "" where there is nothing to say.
type column struct {
	title string
	cell  func(inspect.Contender) string
}

// columns are those that a table of q may have.
func columns(q inspect.Queue) []column {
	return []column{
		{"PLACE", func(c inspect.Contender) string { return fmt.Sprint(c.Place) }},
		{"STATE", func(c inspect.Contender) string {
			if c.Holding {
				return "holding"
			}
			return "waiting"
		}},
		{"FLOW", func(c inspect.Contender) string { return brief(c.Flow) }},
		{"KIND", func(c inspect.Contender) string {
			if q.Recipe != inspect.RWLock {
				return "" // all are the same
			}
			return c.Kind
		}},
		{"OWNER", func(c inspect.Contender) string { return brief(c.Owner) }},
		{"TOKEN", func(c inspect.Contender) string { return c.Token.String() }},
		{"PERMITS", func(c inspect.Contender) string {
			if c.Permits == 0 {
				return ""
			}
			return fmt.Sprint(c.Permits)
		}},
		{"SLOTS", func(c inspect.Contender) string { return list(c.Slots) }},
		{"SINCE", func(c inspect.Contender) string { return c.Since.UTC().Format(time.RFC3339) }},
		{"AGE", func(c inspect.Contender) string { return age(c.Age) }},
	}
}

// table returns a heading, and where somebody is in line a row for each, below the
// titles. Columns in which there is nothing are left out.
func table(q inspect.Queue) []string {
	var b strings.Builder
	fmt.Fprintln(&b, heading(q))
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	var used []column
	for _, col := range columns(q) {
		for _, c := range q.Contenders {
			if col.cell(c) != "" {
				used = append(used, col)
				break
			}
		}
	}
	row := func(cell func(column) string) {
		for i, col := range used {
			if i > 0 {
				tw.Write([]byte("\t"))
			}
			tw.Write([]byte(cell(col)))
		}
		tw.Write([]byte("\n"))
	}
	if len(q.Contenders) > 0 {
		row(func(col column) string { return col.title })
	}
	for _, c := range q.Contenders {
		row(func(col column) string { return cmp.Or(col.cell(c), "-") })
	}
	tw.Flush()
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func heading(q inspect.Queue) string {
	s := fmt.Sprintf("%s at %s: ", q.Path, q.Time.UTC().Format(time.RFC3339))
	if q.Recipe != "" {
		s += q.Recipe
		if q.Size > 0 {
			s += fmt.Sprintf(" of %d", q.Size)
		}
		s += ", "
	}
	if len(q.Contenders) == 0 {
		return s + "nobody in line"
	}
	verb := func(n int, one, more string) string {
		if n == 1 {
			return one
		}
		return more
	}
	holds, waits := len(q.Holders()), len(q.Waiters())
	return s + fmt.Sprintf("%d %s, %d %s", holds, verb(holds, "holds", "hold"), waits, verb(waits, "waits", "wait"))
}

// briefly is how many characters of a name are shown.
const briefly = 40

// brief returns a name as one word that can do no harm to a terminal.
func brief(name string) string {
	s := []rune(name)
	if len(s) > briefly {
		s = append(s[:briefly-1], '…')
	}
	return word(string(s))
}

func list(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ","), "[]")
}

// age writes a duration with about two digits.
func age(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Truncate(100 * time.Millisecond).String()
	case d < 10*time.Hour:
		return d.Truncate(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
