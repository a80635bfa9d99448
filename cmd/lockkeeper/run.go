package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

const runHelp = `run waits for the lock at PATH, runs COMMAND while it holds it, and gives it up
when COMMAND has ended. Without --, the first argument that is no flag is PATH.
COMMAND has our standard input, output and error, and our environment (with
LOCKKEEPER_AUTH and LOCKKEEPER_REDIS in it, if set) and

    LOCKKEEPER_PATH     PATH
    LOCKKEEPER_TOKEN    the fencing token, in decimal: larger for every later grant
    LOCKKEEPER_OWNER    the name that others see
    LOCKKEEPER_SLOT     with -permits N, a number from 0 to N-1 that no other holder
                        has; with -take, the lowest of those
    LOCKKEEPER_SLOTS    all of them, with commas between
    LOCKKEEPER_FLOW     with -flow, the flow's name

Kinds of lock. While it is used, a path is of one kind. Without further flags it is a
mutex: one holds it at a time. With -shared (or -rw read) or -rw write it is a read/write
lock: those with -shared hold it together, one with -rw write holds it alone. With
-permits N it is a semaphore: N permits are there, of which each takes one or as
many as -take says. All kinds are had in order of arrival. Whoever comes with flags
of another kind, or with another N, is told so, with exit code 118.

Flows. With -flow NAME, a mutex is shared between flows (tenants, users, kinds of job)
and not between requests: it goes round the flows that want it, so that one with a
thousand requests does not make all others wait behind them. Each gets turns in
proportion to its -weight; within a flow it is first come, first served. With
-by-hold-time it is the time of holding that is shared. All who use PATH should have
a flow: those without one are served as they come. The newest request's weight counts
for its flow. -try finds the lock busy also where others of the flow wait for it.

Redis. With -redis URL, or LOCKKEEPER_REDIS in the environment and no -servers, the
lock is on Redis, and PATH is its key: 1 to 1024 bytes, with or without a slash. The URL:

    redis://[USER:PASSWORD@]HOST[:PORT][/DB]     one server; port 6379 where left out
    redis://[USER:PASSWORD@]HOST[:PORT],HOST…    some servers of a Cluster
    rediss://…                                   the same with TLS; SSL_CERT_FILE names
                                                 a file of other authorities to trust
    unix://[USER:PASSWORD@]/SOCKET[?db=DB]       a socket

Special characters in USER and PASSWORD are written as %XX. Options such as
?dial_timeout=2s are those of go-redis. -timeout is the lock's time to live (100ms to
24h), and the grace goes by that. Flows and the flags of ZooKeeper are refused. A lock
on Redis is weaker: a failover, an eviction or whoever deletes the key may give it to
another while COMMAND runs, which ends up to a third of -timeout later: use the token.

Loss. When no news comes from the servers, trust in the lock ends before they
can give it to another. When -grace is left of it, COMMAND gets
SIGTERM; a little before its end, SIGKILL. It has to end even if news come again
in between. When the lock is taken away outright (its node or key was deleted, the
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
				j, err := f.job("run", "lock", args, f.check, func(j *job) error { return f.place(fs, j) })
				if err != nil {
					return err
				}
				j.extra = f.kindFlags.environ()
				return f.run(j)
			}
		},
	}
}

// runFlags are the flags of run, as given.
type runFlags struct {
	holdFlags
	kindFlags
	redisFlags
	wait  time.Duration
	try   bool
	redis *redisURL // nil: on ZooKeeper
}

func (f *runFlags) register(fs *flag.FlagSet) {
	f.holdFlags.register(fs, "lock")
	f.kindFlags.register(fs)
	f.redisFlags.register(fs)
	fs.BoolVar(&f.try, "try", false, "do not wait for the lock")
	duration(fs, &f.wait, "wait", "give up if the lock is not had after this `duration`, counted from the start\n(default: wait for ever)")
}

// check refuses values that can't be right. It sends nothing.
func (f *runFlags) check() error {
	switch {
	case f.try && f.wait != unset:
		return usagef("-try and -wait exclude each other")
	case f.wait == 0:
		return usagef("-wait 0: want more than 0; -try does not wait")
	}
	if err := f.kindFlags.check(f.lockDelay != unset); err != nil {
		return err
	}
	return f.holdFlags.check()
}

// run does the job.
func (f *runFlags) run(j *job) error {
	j.signals = takeSignals()
	ctx, stop := untilSignal(context.Background(), j.signals, anySignal)
	defer stop()
	if f.wait != unset {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, f.wait, errWaitOver)
		defer cancel()
	}

	svc, err := f.reach(ctx, j)
	if err != nil {
		return err
	}
	defer svc.close()
	grant, err := f.lock(ctx, svc)
	if err != nil {
		return err
	}
	stop()
	err = j.hold(ctx, grant, svc.timeout, nil)
	ctx, stop = untilSignal(context.Background(), j.signals, anySignal)
	defer stop()
	if lost := j.release(ctx, grant, svc.timeout); lost != nil && !errors.As(err, new(lossError)) {
		// In the last moment, but the command may not have been protected to its end.
		return lost
	}
	return err
}

// lock takes the lock.
func (f *runFlags) lock(ctx context.Context, svc *service) (*recipes.Grant, error) {
	k, err := svc.kind()
	if err != nil {
		return nil, err
	}
	acquire := k.lock
	if f.try {
		acquire = k.try
		var cancel context.CancelFunc
		ctx, cancel = f.connectLimit(ctx)
		defer cancel()
	}
	grant, err := acquire(ctx)
	switch {
	case errors.Is(err, recipes.ErrBusy), errors.Is(err, errWaitOver):
		return nil, &failure{exitBusy, fmt.Errorf("%w%s", err, heldBy(k.contenders))}
	case errors.Is(err, recipes.ErrConflict):
		return nil, fmt.Errorf("%w\n%s", err, k.otherwise)
	}
	return grant, err
}

// heldByLimit is how long those who did not get the lock wait to be told who has it.
var heldByLimit = time.Second // tests have more time than people

// heldBy says who has the lock, where that can be found out quickly.
func heldBy(contenders func(context.Context) ([]recipes.Contender, error)) string {
	ctx, cancel := context.WithTimeout(context.Background(), heldByLimit)
	defer cancel()
	queue, err := contenders(ctx)
	if err != nil {
		return ""
	}
	var first string
	others := 0
	for _, c := range queue {
		switch {
		case !c.Holding:
		case first == "":
			first = fmt.Sprintf("; held by %s since %s", c.Owner, c.Since.Format(time.RFC3339))
		default:
			others++
		}
	}
	if others > 0 {
		first += fmt.Sprintf(", and %d more", others)
	}
	return first
}
