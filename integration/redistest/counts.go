package redistest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Counts says how often a server has carried out each command, by the command's
// name in lower case; subcommands are "client|kill". What a script calls counts
// too, and the command that runs the script counts once.
type Counts map[string]int

// Counts returns what the server has carried out up to now (INFO commandstats).
func (s *Server) Counts(t testing.TB) Counts {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	fields, err := s.info(ctx, "commandstats")
	if err != nil {
		t.Fatalf("%s: commandstats: %v", s.addr, err)
	}
	c := make(Counts)
	for name, value := range fields {
		var calls int
		if _, err := fmt.Sscanf(value, "calls=%d,", &calls); err == nil {
			c[strings.TrimPrefix(name, "cmdstat_")] = calls
		}
	}
	return c
}

// Since returns what came after earlier counts of the same server.
func (c Counts) Since(earlier Counts) Counts {
	d := make(Counts)
	for name, n := range c {
		if n -= earlier[name]; n > 0 {
			d[name] = n
		}
	}
	return d
}

// Of returns how often the commands were carried out, all together.
func (c Counts) Of(names ...string) (n int) {
	for _, name := range names {
		n += c[name]
	}
	return n
}

// String returns the counts in the order of the names.
func (c Counts) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s:%d", name, c[name]))
	}
	return strings.Join(parts, " ")
}

// Refused returns how often the server has answered with an error of that kind, such
// as "OOM", up to now (INFO errorstats).
func (s *Server) Refused(t testing.TB, kind string) (n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	fields, err := s.info(ctx, "errorstats")
	if err != nil {
		t.Fatalf("%s: errorstats: %v", s.addr, err)
	}
	fmt.Sscanf(fields["errorstat_"+kind], "count=%d", &n)
	return n
}
