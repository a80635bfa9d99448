package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// unset is the value of a duration flag that was not given.
const unset = time.Duration(-1 << 63)

// holdFlags are the flags of those who hold something while a command runs.
type holdFlags struct {
	connFlags
	owner                     string
	grace, maxHold, lockDelay time.Duration
}

// register makes the flags; what says what is held.
func (f *holdFlags) register(fs *flag.FlagSet, what string) {
	f.connFlags.register(fs)
	text(fs, &f.owner, "owner", "`name` shown to others that look at the "+what+", 1 to 256 bytes\n(default host/pid)")
	duration(fs, &f.grace, "grace", "`duration` that the command has to end by itself when the "+what+" is being lost;\nat most a third of the session timeout (default 2s, or a fifth of the\nsession timeout or of -max-hold if that is less)")
	duration(fs, &f.maxHold, "max-hold", "end the command when it has held the "+what+" for this `duration`\n(default: no limit)")
	duration(fs, &f.lockDelay, "lock-delay", "if we die or lose the "+what+", keep it closed to others for this `duration`,\n1ms to 24h (default: none)")
}

// text is fs.StringVar for a flag without a default. It refuses what is empty: that is
// a variable that was not set, and not to be taken for a flag that was left out.
func text(fs *flag.FlagSet, p *string, name, usage string) {
	fs.Func(name, usage, func(s string) error {
		if s == "" {
			return errors.New("it is empty: leave the flag out for the default")
		}
		*p = s
		return nil
	})
}

// duration is fs.DurationVar for a flag without a default.
func duration(fs *flag.FlagSet, p *time.Duration, name, usage string) {
	*p = unset
	fs.Func(name, usage, func(s string) (err error) {
		*p, err = parseDuration(s)
		return err
	})
}

// durationOr is fs.DurationVar with an error that says what a duration looks like.
func durationOr(fs *flag.FlagSet, p *time.Duration, name string, otherwise time.Duration, usage string) {
	*p = otherwise
	fs.Var((*durationValue)(p), name, usage)
}

type durationValue time.Duration

func (d *durationValue) String() string { return time.Duration(*d).String() }

func (d *durationValue) Set(s string) error {
	parsed, err := parseDuration(s)
	*d = durationValue(parsed)
	return err
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, errors.New("want a duration with its unit, such as 500ms, 10s or 1h30m")
	case d < 0:
		return 0, errors.New("want 0 or more")
	}
	return d, nil
}

// count is fs.IntVar for a flag that wants 1 to limit and has no default: 0 if it was
// not given.
func count(fs *flag.FlagSet, p *int, limit int, name, usage string) {
	fs.Func(name, usage, func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > limit {
			return fmt.Errorf("want a number from 1 to %d", limit)
		}
		*p = n
		return nil
	})
}

// check refuses values that can't be right. It sends nothing.
func (f *holdFlags) check() error {
	if err := f.connFlags.check(); err != nil {
		return err
	}
	if f.maxHold == 0 {
		return usagef("-max-hold 0: want more than 0")
	}
	if f.maxHold != unset && f.grace != unset && f.grace >= f.maxHold {
		return usagef("-grace %v is not less than -max-hold %v", f.grace, f.maxHold)
	}
	_, err := f.graceWithin(f.timeout)
	return err
}

// graceWithin returns the grace for a session with that timeout. The trust
// window of a healthy session goes down to 0.43 of the timeout between two
// heartbeats, and one commit brings it to 0.35 in the worst case, so more than a
// third would end commands for nothing.
func (f *holdFlags) graceWithin(timeout time.Duration) (time.Duration, error) {
	// With less it would be killed as soon as it is started: see guard.lead.
	if least := timeout / 40; f.maxHold != unset && f.maxHold <= least {
		return 0, usagef("-max-hold %v is too short for the session timeout of %v: want more than a fortieth of it, %v",
			f.maxHold, timeout, least)
	}
	if f.grace == unset {
		grace := min(2*time.Second, timeout/5)
		if f.maxHold != unset {
			grace = min(grace, f.maxHold/5)
		}
		return grace, nil
	}
	if limit := timeout / 3; f.grace > limit {
		if timeout != f.timeout {
			return 0, usagef("-grace %v is too long: the ensemble granted a session timeout of %v, not %v, and the grace can be a third of it at most, %v",
				f.grace, timeout, f.timeout, limit.Truncate(time.Millisecond))
		}
		return 0, usagef("-grace %v is too long for the session timeout of %v: it can be a third of it at most, %v",
			f.grace, timeout, limit.Truncate(time.Millisecond))
	}
	return f.grace, nil
}

// lockOptions returns the options of the lock and what they add up to.
func (f *holdFlags) lockOptions(log *slog.Logger) ([]recipes.Option, recipes.Settings, error) {
	opts := []recipes.Option{recipes.Logger(log)}
	if f.owner != "" {
		opts = append(opts, recipes.Owner(f.owner))
	}
	if f.maxHold != unset {
		opts = append(opts, recipes.MaxHold(f.maxHold))
	}
	if f.lockDelay != unset {
		opts = append(opts, recipes.LockDelay(f.lockDelay))
	}
	set, err := recipes.NewSettings(opts, nil)
	if err != nil {
		return nil, set, &failure{exitUsage, err}
	}
	return opts, set, nil
}
