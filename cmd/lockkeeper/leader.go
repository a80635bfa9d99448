package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes/election"
	"github.com/lockkeeper/lockkeeper/session"
)

const leaderHelp = `leader says who leads at PATH, as elected by lockkeeper elect or the library:

    token=4294967299 since=2026-03-01T09:30:00Z owner=web1/4711 value=10.0.0.1:80

Owner and value are quoted where they have spaces, quotes or control characters. If
nobody leads, the exit code is 116. With -watch it says so at once and after each
change, in a line of its own, and "vacant" while nobody leads; what came and went
in between may be left out.

It is true of one moment: to decide whether to write, use the token.
`

func leaderSubcommand() subcommand {
	return subcommand{
		name:     "leader",
		synopsis: "leader [flags] PATH",
		summary:  "say who leads at PATH",
		help:     leaderHelp,
		flags: func(fs *flag.FlagSet) func([]string) error {
			var f connFlags
			f.register(fs)
			watch := fs.Bool("watch", false, "go on, and say what changes")
			return func(args []string) error {
				cfg, err := f.lookConfig("leader", args)
				if err != nil {
					return err
				}
				return f.leader(cfg, args[0], *watch, os.Stdout)
			}
		},
	}
}

// leader writes who leads, again and again if it is to watch.
func (f *connFlags) leader(cfg session.Config, path string, watch bool, w io.Writer) error {
	return f.look(cfg, func(ctx context.Context, sess *session.Session) error {
		e, err := election.New(sess, path)
		if err != nil {
			return err
		}
		if watch {
			return watchLeader(ctx, e, w)
		}
		ctx, cancel := f.connectLimit(ctx)
		defer cancel()
		l, err := e.Leader(ctx)
		if errors.Is(err, election.ErrNoLeader) {
			return &failure{exitBusy, err}
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(w, leaderLine(l))
		return err
	})
}

func watchLeader(ctx context.Context, e *election.Election, w io.Writer) error {
	for l, err := range e.Observe(ctx) {
		line := "vacant"
		if err == nil {
			line = leaderLine(l)
		} else if !errors.Is(err, election.ErrNoLeader) {
			return err
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func leaderLine(l election.Leader) string {
	return fmt.Sprintf("token=%v since=%s owner=%s value=%s",
		l.Token, l.Since.UTC().Format(time.RFC3339), word(l.Owner), word(string(l.Value)))
}

// word quotes s if it would not be one word otherwise.
func word(s string) string {
	if q := strconv.Quote(s); strings.Contains(s, " ") || q != `"`+s+`"` {
		return q
	}
	return s
}
