package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// A report is what was printed, and what in it broke a promise.
type report struct {
	out    io.Writer
	kept   int
	missed []string
}

// table prints rows of columns, of which the first row is the head.
func (r *report) table(rows [][]string) {
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		for _, cell := range row {
			fmt.Fprintf(w, "%s\t", cell)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

// promise prints whether a promise was kept.
func (r *report) promise(ok bool, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !ok {
		r.missed = append(r.missed, text)
		fmt.Fprintf(r.out, "\nMISSED: %s\n", text)
		return
	}
	r.kept++
	fmt.Fprintf(r.out, "\nok: %s\n", text)
}

// verdict prints what came of the promises, and returns the exit code.
func (r *report) verdict() int {
	fmt.Fprintf(r.out, "\n%d promises kept, %d missed\n", r.kept, len(r.missed))
	for _, m := range r.missed {
		fmt.Fprintln(r.out, "  missed:", m)
	}
	if len(r.missed) > 0 {
		return 1
	}
	return 0
}
