package main

import (
	"fmt"
	"io"
	"strings"
)

const aboutHelp = `lockkeeper holds a ZooKeeper lock, or leads, while a command runs, and shows who
is in line. Of the locks, run can also have one on Redis.
`

// help prints what is known about a topic.
func help(args []string, w io.Writer) error {
	if len(args) > 1 {
		return usagef("help: want one topic at most")
	}
	if len(args) == 0 {
		writeOverview(w)
		return nil
	}
	switch args[0] {
	case "exit-codes":
		io.WriteString(w, exitCodesHelp)
		return nil
	case "help":
		writeOverview(w)
		return nil
	}
	for _, c := range subcommands() {
		if c.name == args[0] {
			c.writeHelp(w)
			return nil
		}
	}
	return usagef("help: unknown topic %q: want run, elect, leader, show, demo, dev, version or exit-codes", args[0])
}

func writeOverview(w io.Writer) {
	io.WriteString(w, aboutHelp+"\nUsage:\n\n")
	for _, c := range subcommands() {
		fmt.Fprintf(w, "    lockkeeper %-38s %s\n", c.synopsis, c.summary)
	}
	fmt.Fprintf(w, "    lockkeeper %-38s %s\n", "help [TOPIC]", "more about a subcommand, or exit-codes")
}

func (c subcommand) writeHelp(w io.Writer) {
	fmt.Fprintf(w, "Usage: lockkeeper %s\n", c.synopsis)
	var flags strings.Builder
	fs, _ := c.flagSet()
	fs.SetOutput(&flags)
	fs.PrintDefaults()
	if flags.Len() > 0 {
		fmt.Fprintf(w, "\nFlags:\n\n%s", strings.NewReplacer("    \t", "        ", "\t", "\n        ").Replace(flags.String()))
	}
	if c.help != "" {
		fmt.Fprintf(w, "\n%s", c.help)
	}
}

// documentation is all of the help, as doc.go has it.
func documentation() string {
	var b strings.Builder
	writeOverview(&b)
	for _, c := range subcommands() {
		if c.help != "" {
			fmt.Fprintf(&b, "\n%s\n", strings.Repeat("-", 64))
			c.writeHelp(&b)
		}
	}
	return b.String()
}
