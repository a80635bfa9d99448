package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes/election"
	"github.com/lockkeeper/lockkeeper/session"
)

const electHelp = `elect is a candidate in the election at PATH, runs COMMAND while it is elected, and
shows a value, such as an address, to all who ask who leads: see lockkeeper leader.
Candidates are elected in order of arrival. COMMAND has what run gives it, and
LOCKKEEPER_PATH, LOCKKEEPER_TOKEN and LOCKKEEPER_OWNER.

Loss. When the term is being lost, or -max-hold is over, COMMAND is ended as run
ends it, before another can be elected. Then we are a candidate again, at the
tail, and COMMAND runs again when we are elected again. With -once that is the
end: exit code 117.

The end. When COMMAND ends by itself, whatever its exit code, we resign and exit
with that. Whoever wants it started again runs lockkeeper in a loop, so that
others come first.

Signals. INT, TERM and QUIT end us: they are passed on to COMMAND, and when it has
ended, in its own time, we resign and exit with 128+n. HUP, USR1 and USR2 are
passed on and change nothing else. While there is no COMMAND, HUP ends us, too, and
USR1 and USR2 do nothing. Whoever ends us while we are a candidate leaves nothing
behind. The rest, and what is said of terminals and Windows, is as with run.

Exit codes: see lockkeeper help exit-codes.
`

func electSubcommand() subcommand {
	return subcommand{
		name:     "elect",
		synopsis: "elect [flags] PATH -- COMMAND [ARG…]",
		summary:  "run COMMAND while elected at PATH",
		help:     electHelp,
		flags: func(fs *flag.FlagSet) func([]string) error {
			var f electFlags
			f.register(fs)
			return func(args []string) error {
				j, err := f.job("elect", "term", args, f.check, f.onZooKeeper)
				if err != nil {
					return err
				}
				value := j.owner
				if f.value != nil {
					value = *f.value
				}
				return (&candidate{job: j, value: []byte(value), once: f.once}).run()
			}
		},
	}
}

// electFlags are the flags of elect, as given.
type electFlags struct {
	holdFlags
	value *string // nil: not given
	once  bool
}

func (f *electFlags) register(fs *flag.FlagSet) {
	f.holdFlags.register(fs, "term")
	fs.Func("value", "`text` to publish while elected; it may be empty (default: the owner)", func(s string) error {
		f.value = &s
		return nil
	})
	fs.BoolVar(&f.once, "once", false, "one term only: exit, too, when the term was lost")
}

func (f *electFlags) check() error {
	if f.value != nil && len(*f.value) > election.MaxValue {
		return usagef("-value has %d bytes: want %d at most", len(*f.value), election.MaxValue)
	}
	return f.holdFlags.check()
}

// A candidate runs its command once a term.
type candidate struct {
	*job
	value []byte
	once  bool
	told  os.Signal // the first that said to end; nil if none has
}

// endsAlways reports whether a signal ends us also while the command runs.
func endsAlways(s os.Signal) bool {
	switch signalNumber(s) {
	case 2, 3, 15: // INT, QUIT, TERM
		return true
	}
	return false
}

// endsIdle reports whether it does while there is no command.
func endsIdle(s os.Signal) bool { return endsAlways(s) || signalNumber(s) == 1 } // HUP

// note remembers a signal that was passed on to the command.
func (c *candidate) note(s os.Signal) {
	if c.told == nil && endsAlways(s) {
		c.told = s
	}
}

// run campaigns again and again.
func (c *candidate) run() error {
	c.signals = takeSignals()
	ctx, stop := untilSignal(context.Background(), c.signals, endsIdle)
	defer stop()
	sess, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer sess.Close()
	stop()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	e, err := election.New(sess, c.path, c.opts...)
	if err != nil {
		return err
	}
	for {
		err := c.serve(sess, e)
		if !errors.As(err, new(lossError)) || c.told != nil || c.once {
			return err
		}
		say(fmt.Errorf("elect: %w; campaigning again", err))
	}
}

// serve waits to be elected and runs the command for one term.
func (c *candidate) serve(sess *session.Session, e *election.Election) error {
	ctx, stop := untilSignal(context.Background(), c.signals, endsIdle)
	defer stop()
	term, err := e.Campaign(ctx, c.value)
	if err != nil {
		return err
	}
	stop()
	err = c.hold(ctx, term.Grant, sess.Timeout(), c.note)
	return c.resign(term, sess.Timeout(), err)
}

// resign ends the term and says how it went: ended is what came of the command.
func (c *candidate) resign(term *election.Term, timeout time.Duration, ended error) error {
	ctx, stop := untilSignal(context.Background(), c.signals, endsIdle)
	late := c.release(ctx, term.Grant, timeout)
	stop()
	if s, ok := pending(ctx, c.signals, endsIdle); ok && c.told == nil { // it came when the command had just ended
		c.told = s
	}
	lost := errors.As(ended, new(lossError))
	switch {
	case c.told != nil && lost:
		return &failure{exitSignal + signalNumber(c.told), ended}
	case c.told != nil:
		return &failure{code: exitSignal + signalNumber(c.told)}
	case !lost && late != nil:
		// In the last moment: the command has ended by itself, and is not run again.
		return late
	}
	return ended
}
