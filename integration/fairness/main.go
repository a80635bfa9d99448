// Command fairness measures how the fair lock shares itself between flows, and what
// that costs, on a ZooKeeper server. It prints tables, and ends with exit code 1 if
// a figure that the documentation of package fair promises was missed.
//
// Shares are counted by grants and by sums of the time of holding; times are shown
// only beside others that were taken in the same run.
//
// By default it starts a server in a container, as the tests do (see
// integration/README.md). With -servers it uses what is there, below a node of its
// own, which it removes afterwards; with -inprocess, package zktest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("fairness", flag.ContinueOnError)
	servers := flags.String("servers", "", "`host:port` of your own servers, with commas in between\n(default: one is started in a container, which needs Docker)")
	inProcess := flags.Bool("inprocess", false, "use a server in this process: needs nothing")
	only := flags.String("only", "", "the `tables` to print, such as \"be\" (default: all)")
	grants := flags.Int("grants", 2000, "grants that shares are counted over: 100 to 1000000")
	hold := flags.Duration("hold", 2*time.Millisecond, "how long the lock is held each time: 0s to 1s")
	flags.Usage = func() { usage(flags) }
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if err := checkFlags(flags, *servers, *inProcess, *only, *grants, *hold); err != nil {
		fmt.Fprintln(os.Stderr, "fairness:", err)
		return 2
	}
	var list []string
	if *servers != "" {
		list = strings.Split(*servers, ",")
	}
	s, err := openSite(ctx, list, *inProcess)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fairness:", err)
		return 1
	}
	r := &report{out: os.Stdout}
	fmt.Fprintf(r.out, "Servers: %s; the lock is held for %v each time unless it says otherwise.\n", s.name, *hold)
	err = tables(ctx, s, r, scale{grants: *grants, hold: *hold, beside: true}, *only)
	err = errors.Join(err, s.close())
	if err != nil {
		fmt.Fprintln(os.Stderr, "fairness:", err)
		return 1
	}
	return r.verdict()
}

func usage(flags *flag.FlagSet) {
	w := flags.Output()
	fmt.Fprint(w, "Usage: go run ./integration/fairness [flags]\n\nfairness measures how the fair lock shares itself between flows, and prints tables:\n\n")
	for _, t := range all {
		fmt.Fprintf(w, "  %s  %s\n", t.name, t.title)
	}
	fmt.Fprint(w, "\nThe exit code is 1 if a promised figure was missed.\n\n")
	flags.PrintDefaults()
}

func checkFlags(flags *flag.FlagSet, servers string, inProcess bool, only string, grants int, hold time.Duration) error {
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case servers != "" && inProcess:
		return errors.New("-servers and -inprocess: want one of them")
	case grants < 100 || grants > 1_000_000:
		return fmt.Errorf("-grants %d: want 100 to 1000000", grants)
	case hold < 0 || hold > time.Second:
		return fmt.Errorf("-hold %v: want 0s to 1s", hold)
	}
	if i := strings.IndexFunc(only, func(r rune) bool { return !strings.ContainsRune(tableNames(), r) }); i >= 0 {
		return fmt.Errorf("-only %q: want some of %s", only, tableNames())
	}
	return nil
}

// A scale says how much is measured.
type scale struct {
	grants int
	hold   time.Duration
	beside bool // show also what it is like without flows, where that takes long
}

type table struct {
	name  string
	title string
	fill  func(context.Context, *site, *report, scale) error
}

var all = []table{
	{"a", "A flow with a single request now and then, beside one with 1000 in line", single},
	{"b", "Four flows with weights 1:2:3:4 under constant load", weights},
	{"c", "Eight equal flows with very unequal demand", demands},
	{"d", "Eight equal flows, one of which holds ten times longer", holdTimes},
	{"e", "Hand-over within one busy flow, beside plain FIFO and a mutex", handOvers},
	{"f", "What a hand-over costs", costs},
}

func tableNames() string {
	var b strings.Builder
	for _, t := range all {
		b.WriteString(t.name)
	}
	return b.String()
}

func tables(ctx context.Context, s *site, r *report, sc scale, only string) error {
	for _, t := range all {
		if only != "" && !strings.Contains(only, t.name) {
			continue
		}
		fmt.Fprintf(r.out, "\n(%s) %s\n\n", t.name, t.title)
		if err := t.fill(ctx, s, r, sc); err != nil {
			return fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	return nil
}
