package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/recipes/mutex"
	"github.com/lockkeeper/lockkeeper/session"
)

const runHelp = `run waits for the lock at PATH, runs COMMAND while it holds it, and gives it up
when COMMAND has ended. Without --, the first argument that is no flag is PATH.
COMMAND has our standard input, output and error, and our environment (with
LOCKKEEPER_AUTH in it, if set) and

    LOCKKEEPER_PATH     PATH
    LOCKKEEPER_TOKEN    the fencing token, in decimal: larger for every later grant
    LOCKKEEPER_OWNER    the name that others see

Loss. When no news comes from the ensemble, trust in the session ends before the
ensemble can give the lock to another. When -grace is left of it, COMMAND gets
SIGTERM; a little before its end, SIGKILL. It has to end even if news come again
in between. When the lock is taken away outright (its node was deleted, the
session was expired), another may hold it: SIGKILL at once. With -grace 0 there
is SIGKILL only. The signals go to the process group that COMMAND started with,
not to those that left it (setsid, shells with job control).

The end. COMMAND's first process decides: what it leaves running in the background
is left alone, and runs on without the lock. After a loss, all of its
group are waited for, and killed when trust is over.

Signals. INT, TERM, HUP, QUIT, USR1 and USR2 are passed on to the group, except
those that were ignored when we were started. While we wait for the lock they end
the wait, and nothing is left behind. If we are killed ourselves, Linux kills
COMMAND's first process, but not its children; elsewhere COMMAND runs on. If we
are stopped, nobody watches: the token is what protects the resource then.

Terminal. If we are in the foreground of one, COMMAND is put there instead, so it
can read it and gets Ctrl-C itself. Ctrl-Z has no effect on Linux; elsewhere it stops
COMMAND while the lock stays held: continue it with kill -CONT.

Windows. COMMAND gets Ctrl-Break where it says SIGTERM or signal here, and runs in
a job that is terminated where it says SIGKILL. The job ends with us: nothing of
it runs on.

Exit codes:

` + exitCodesHelp

func runSubcommand() subcommand {
	return subcommand{
		name:     "run",
		synopsis: "run [flags] PATH -- COMMAND [ARG…]",
		summary:  "hold the lock at PATH while COMMAND runs",
		help:     runHelp,
		flags: func(fs *flag.FlagSet) func([]string) error {
			var f runFlags
			f.register(fs)
			return func(args []string) error {
				j, err := f.job(args)
				if err != nil {
					return err
				}
				return j.run()
			}
		},
	}
}

// A job is one run: everything that could be checked without sending anything
// has been.
type job struct {
	flags  runFlags
	log    *slog.Logger
	config session.Config
	opts   []recipes.Option
	owner  string
	path   string
	argv   []string // the first is a file
	name   string   // of the command, as given

	signals chan os.Signal
}

// job checks the flags and arguments of run.
func (f *runFlags) job(args []string) (*job, error) {
	j := &job{flags: *f, log: slog.New(slog.DiscardHandler)}
	if f.verbose {
		j.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if err := j.parseArgs(args); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	var err error
	if j.config, err = f.sessionConfig(j.log); err != nil {
		return nil, err
	}
	var set recipes.Settings
	if j.opts, set, err = f.lockOptions(j.log); err != nil {
		return nil, err
	}
	j.owner = set.Owner
	return j, j.findCommand()
}

// parseArgs takes PATH -- COMMAND and PATH COMMAND.
func (j *job) parseArgs(args []string) error {
	if len(args) == 0 {
		return usagef("no PATH\nTry: lockkeeper run -h")
	}
	j.path, args = args[0], args[1:]
	if err := session.ValidatePath(j.path); err != nil {
		return &failure{exitUsage, err}
	}
	switch {
	case len(args) > 0 && args[0] == "--":
		args = args[1:]
	case len(args) > 0 && strings.HasPrefix(args[0], "-"):
		return usagef("%q after PATH: flags go before PATH, and the command after --", args[0])
	}
	if len(args) == 0 || args[0] == "" {
		return usagef("no COMMAND\nTry: lockkeeper run -h")
	}
	j.argv = args
	return nil
}

// findCommand looks for the command, so that no lock is taken for one that isn't
// there.
func (j *job) findCommand() error {
	file, err := exec.LookPath(j.argv[0])
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &failure{exitNotStarted, err}
	case err != nil:
		return &failure{exitNotFound, err}
	}
	j.name = j.argv[0]
	j.argv = append([]string{file}, j.argv[1:]...)
	return nil
}

// run does the job. Signals that were ignored when we were started stay so.
func (j *job) run() error {
	j.signals = make(chan os.Signal, 16)
	for _, s := range forwarded {
		if !signal.Ignored(s) {
			signal.Notify(j.signals, s)
		}
	}
	ctx, stop := untilSignal(context.Background(), j.signals)
	defer stop()
	if j.flags.wait != unset {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, j.flags.wait, errWaitOver)
		defer cancel()
	}

	sess, err := j.connect(ctx)
	if err != nil {
		return err
	}
	defer sess.Close()
	if _, err := j.flags.graceWithin(sess.Timeout()); err != nil {
		return err // before anybody waits for long
	}
	grant, err := j.lock(ctx, sess)
	if err != nil {
		return err
	}
	stop()
	err = j.hold(ctx, grant, sess.Timeout())
	if lost := j.release(grant, sess.Timeout()); lost != nil && exitCode(err) != exitLost {
		// In the last moment, but the command may not have been protected to its end.
		return lost
	}
	return err
}

// connect opens the session.
func (j *job) connect(ctx context.Context) (*session.Session, error) {
	ctx, cancel := j.connectLimit(ctx)
	defer cancel()
	sess, err := session.Open(ctx, j.config)
	if errors.Is(err, errWaitOver) { // of no use to those who want to know whether it is busy
		err = &failure{exitUnavailable, err}
	}
	if err != nil {
		return nil, err
	}
	j.log.Info("connected", "session", fmt.Sprintf("%#x", sess.ID()), "timeout", sess.Timeout())
	return sess, nil
}

func (j *job) connectLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	if j.flags.connect == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, j.flags.connect, errConnectOver)
}

// lock takes the lock, and makes sure that the trust window is wider than the
// grace: after a long wait it may not be.
func (j *job) lock(ctx context.Context, sess *session.Session) (*recipes.Grant, error) {
	m, err := mutex.New(sess, j.path, j.opts...)
	if err != nil {
		return nil, err
	}
	acquire := m.Lock
	if j.flags.try {
		acquire = m.TryLock
		var cancel context.CancelFunc
		ctx, cancel = j.connectLimit(ctx)
		defer cancel()
	}
	grant, err := acquire(ctx)
	if errors.Is(err, recipes.ErrBusy) || errors.Is(err, errWaitOver) {
		return nil, &failure{exitBusy, fmt.Errorf("%w%s", err, heldBy(m))}
	}
	if err != nil {
		return nil, err
	}
	j.log.Info("granted", "path", j.path, "token", grant.Token(), "owner", j.owner)
	return grant, nil
}

// heldBy says who has the lock, where that can be found out quickly.
func heldBy(m *mutex.Mutex) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	queue, err := m.Contenders(ctx)
	if err != nil {
		return ""
	}
	for _, c := range queue {
		if c.Holding {
			return fmt.Sprintf("; held by %s since %s", c.Owner, c.Since.Format(time.RFC3339))
		}
	}
	return ""
}

// hold runs the command under the lock, unless ctx was ended by a signal.
func (j *job) hold(ctx context.Context, grant *recipes.Grant, timeout time.Duration) error {
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
		return &failure{exitLost, fmt.Errorf("%w; the command was not started", err)}
	}
	cmd := &exec.Cmd{
		Path: j.argv[0], Args: append([]string{j.name}, j.argv[1:]...),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: append(os.Environ(),
			"LOCKKEEPER_PATH="+j.path,
			"LOCKKEEPER_TOKEN="+grant.Token().String(),
			"LOCKKEEPER_OWNER="+j.owner),
	}
	p, err := startProcess(cmd)
	if err != nil {
		return &failure{exitNotStarted, err}
	}
	g.cmd = p
	lost := g.watch()
	j.log.Info("command ended", "state", cmd.ProcessState, "pid", cmd.Process.Pid)
	if lost != nil {
		return &failure{exitLost, fmt.Errorf("lock lost, the command was ended: %w", lost)}
	}
	if code := p.exitCode(); code != 0 {
		return &failure{code: code}
	}
	return nil
}

// release gives the lock up and waits for that to be confirmed, within reason:
// closing the session does it as well, and in the end the ensemble does. The error
// says that the lock was lost before.
func (j *job) release(grant *recipes.Grant, timeout time.Duration) error {
	ctx, stop := untilSignal(context.Background(), j.signals)
	defer stop()
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
