package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// A subcommand has its flags made by flags, and the work done by run once they
// are parsed; what is left of the arguments goes to run.
type subcommand struct {
	name, synopsis string
	summary        string
	help           string // after the flags
	flags          func(*flag.FlagSet) (run func(args []string) error)
}

// subcommands returns all of them, in the order of the help.
func subcommands() []subcommand {
	return []subcommand{runSubcommand(), electSubcommand(), leaderSubcommand(), showSubcommand(), demoSubcommand(), devSubcommand(), versionSubcommand()}
}

func main() {
	err := dispatch(os.Args[1:], os.Stdout)
	var f *failure
	if err != nil && !(errors.As(err, &f) && f.err == nil) {
		say(err)
	}
	os.Exit(exitCode(err))
}

// say says on stderr what went wrong.
func say(err error) {
	// The library's errors begin with its name, which is ours: once is enough.
	fmt.Fprintln(os.Stderr, "lockkeeper:", strings.ReplaceAll(err.Error(), "lockkeeper: ", ""))
}

// dispatch runs the subcommand that args name.
func dispatch(args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return usagef("no subcommand: want run, elect, leader, show, demo, dev, version or help\nTry: lockkeeper help")
	}
	name, args := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		return help(args, stdout)
	}
	for _, c := range subcommands() {
		if c.name == name {
			return c.invoke(args, stdout)
		}
	}
	return usagef("unknown subcommand %q: want run, elect, leader, show, demo, dev, version or help\nTry: lockkeeper help", name)
}

func (c subcommand) invoke(args []string, stdout io.Writer) error {
	fs, run := c.flagSet()
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		c.writeHelp(stdout)
		return nil
	}
	if err != nil {
		return usagef("%s: %w\nTry: lockkeeper %s -h", c.name, err, c.name)
	}
	if err := run(fs.Args()); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

func (c subcommand) flagSet() (*flag.FlagSet, func([]string) error) {
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // we say it ourselves, once
	return fs, c.flags(fs)
}

func versionSubcommand() subcommand {
	return subcommand{
		name: "version", synopsis: "version", summary: "print the version",
		flags: func(*flag.FlagSet) func([]string) error {
			return func(args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q", args[0])
				}
				_, err := fmt.Println("lockkeeper", version())
				return err
			}
		},
	}
}

// version says from what this binary was built, as far as the build recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown) " + runtime.Version()
	}
	s := info.Main.Version
	for _, v := range info.Settings {
		if v.Key == "vcs.revision" && s == "(devel)" {
			s += " " + v.Value
		}
	}
	return s + " " + info.GoVersion + " " + runtime.GOOS + "/" + runtime.GOARCH
}
