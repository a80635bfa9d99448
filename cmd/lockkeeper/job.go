package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// A job is a command that runs while something is held: everything that could be
// checked without sending anything has been.
type job struct {
	what   string // is held: "lock" or "term"
	flags  *holdFlags
	log    *slog.Logger
	config session.Config // where it is on ZooKeeper
	opts   []recipes.Option
	owner  string
	path   string
	argv   []string // the first is a file
	name   string   // of the command, as given
	extra  []string // environment of the command, beside what every job has

	signals chan os.Signal
}

// job checks what was given to a subcommand; check is for its own flags, and place for
// where the lock is.
func (f *holdFlags) job(subcommand, what string, args []string, check func() error, place func(*job) error) (*job, error) {
	j := &job{what: what, flags: f, log: f.logger()}
	if err := j.parseArgs(subcommand, args); err != nil {
		return nil, err
	}
	if err := check(); err != nil {
		return nil, err
	}
	if err := place(j); err != nil {
		return nil, err
	}
	var err error
	var set recipes.Settings
	if j.opts, set, err = f.lockOptions(j.log); err != nil {
		return nil, err
	}
	j.owner = set.Owner
	return j, j.findCommand()
}

// parseArgs takes PATH -- COMMAND and PATH COMMAND.
func (j *job) parseArgs(subcommand string, args []string) error {
	if len(args) == 0 {
		return usagef("no PATH\nTry: lockkeeper %s -h", subcommand)
	}
	j.path, args = args[0], args[1:]
	switch {
	case len(args) > 0 && args[0] == "--":
		args = args[1:]
	case len(args) > 0 && strings.HasPrefix(args[0], "-"):
		return usagef("%q after PATH: flags go before PATH, and the command after --", args[0])
	}
	if len(args) == 0 || args[0] == "" {
		return usagef("no COMMAND\nTry: lockkeeper %s -h", subcommand)
	}
	j.argv = args
	return nil
}

// findCommand looks for the command, so that no lock is taken for one that isn't
// there.
func (j *job) findCommand() error {
	file, err := exec.LookPath(j.argv[0])
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return &failure{exitNotFound, err}
	case err != nil: // a directory, say
		return &failure{exitNotStarted, err}
	}
	j.name = j.argv[0]
	j.argv = append([]string{file}, j.argv[1:]...)
	return nil
}

// connect opens the session, and refuses a grace that does not fit its timeout,
// before anybody waits for long.
func (j *job) connect(ctx context.Context) (*session.Session, error) {
	sess, err := j.flags.open(ctx, j.config)
	if err != nil {
		return nil, err
	}
	if _, err := j.flags.graceWithin(sess.Timeout()); err != nil {
		sess.Close()
		return nil, err
	}
	return sess, nil
}

// hold runs the command under the grant, unless ctx was ended by a signal. Signals
// that are passed on to it are shown to seen, if that is not nil.
func (j *job) hold(ctx context.Context, grant *recipes.Grant, timeout time.Duration, seen func(os.Signal)) error {
	j.log.Info("granted", "path", j.path, "token", grant.Token(), "owner", j.owner)
	if cause := context.Cause(ctx); errors.As(cause, new(signalled)) {
		return cause
	}
	grace, err := j.flags.graceWithin(timeout)
	if err != nil {
		return err
	}
	g := &guard{lease: grant, signals: j.signals, timeout: timeout, grace: grace}
	if j.flags.maxHold != unset {
		g.holdEnd = time.Now().Add(j.flags.maxHold)
	}
	if err := g.widen(); err != nil {
		return &failure{exitLost, lossError{fmt.Errorf("%w; the command was not started", err)}}
	}
	cmd := &exec.Cmd{
		Path: j.argv[0], Args: append([]string{j.name}, j.argv[1:]...),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: append(os.Environ(), j.environ(grant)...),
	}
	p, err := startProcess(cmd)
	if err != nil {
		return &failure{exitNotStarted, err}
	}
	g.cmd = overheard{p, seen}
	lost := g.watch()
	j.log.Info("command ended", "state", cmd.ProcessState, "pid", cmd.Process.Pid)
	if lost != nil {
		return &failure{exitLost, lossError{fmt.Errorf("%s lost, the command was ended: %w", j.what, lost)}}
	}
	if code := p.exitCode(); code != 0 {
		return &failure{code: code}
	}
	return nil
}

// A lossError says that the grant was lost before the command had ended by itself.
// The exit code alone can't: a command may have chosen the same.
type lossError struct{ error }

func (l lossError) Unwrap() error { return l.error }

// environ is what the command finds in its environment beside ours.
func (j *job) environ(grant *recipes.Grant) []string {
	env := []string{
		"LOCKKEEPER_PATH=" + j.path,
		"LOCKKEEPER_TOKEN=" + grant.Token().String(),
		"LOCKKEEPER_OWNER=" + j.owner,
	}
	if slots := grant.Slots(); len(slots) > 0 { // ascending
		env = append(env, fmt.Sprintf("LOCKKEEPER_SLOT=%d", slots[0]), "LOCKKEEPER_SLOTS="+list(slots))
	}
	return append(env, j.extra...)
}

// An overheard command is one of which somebody wants to know what signals are
// passed on to it.
type overheard struct {
	command
	seen func(os.Signal) // may be nil
}

func (o overheard) signal(s os.Signal) {
	if o.seen != nil {
		o.seen(s)
	}
	o.command.signal(s)
}

// release gives the grant up and waits for that to be confirmed, within reason:
// closing the session does it as well, and in the end the ensemble does. The error
// says that it was lost before.
func (j *job) release(ctx context.Context, grant *recipes.Grant, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, min(timeout, 5*time.Second))
	defer cancel()
	switch err := grant.Release(ctx); {
	case errors.Is(err, recipes.ErrRevoked):
		return err
	case err != nil:
		j.log.Warn("release not confirmed", "error", err, "free_within", timeout)
	default:
		j.log.Info("released", "path", j.path)
	}
	return nil
}
