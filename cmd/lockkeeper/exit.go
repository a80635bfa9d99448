package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// Exit codes. A command's own code is passed on, so ours keep clear of those
// that are in use: sysexits(3) has 64 to 78, curl those up to about 100, Rust's
// panic 101, init scripts and shells 124 and above.
const (
	exitFailure     = 1
	exitBusy        = 116
	exitLost        = 117
	exitUnavailable = 118
	exitUsage       = 119
	exitNotStarted  = 126
	exitNotFound    = 127
	exitSignal      = 128
)

// exitCodesHelp is the one table of them.
const exitCodesHelp = `code    meaning
0-255   of run and elect: the command's own exit code, when it ended by itself
1       the demo's check failed, or the dev server could not start
116     the lock was not had: busy (-try), or the wait was over (-wait);
        the command was not started; of leader: nobody leads
117     the lock was lost: the command was told to end, or killed; of elect, with
        -once: so was the term
118     the ensemble, or Redis, could not be reached, or it refused; of show: PATH is
        no lock
119     bad input: nothing was sent
126     the command was found but could not be started
127     the command was not found: nothing was sent
128+n   signal n ended the command, the wait for the lock, elect, leader or show
`

// A failure is an error with the exit code that goes with it. Where err is nil
// there is nothing to say: the command has said it.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func usagef(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

// errWaitOver and errConnectOver are the causes of our own deadlines.
var (
	errWaitOver    = errors.New("the wait is over")
	errConnectOver = errors.New("no connection in time")
)

// exitCode returns the code for an error of any subcommand.
func exitCode(err error) int {
	var f *failure
	var s signalled
	switch {
	case err == nil:
		return 0
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &s):
		return exitSignal + signalNumber(s.sig)
	case errors.Is(err, recipes.ErrInvalid), errors.Is(err, session.ErrInvalid):
		return exitUsage
	case errors.Is(err, recipes.ErrBusy), errors.Is(err, errWaitOver):
		return exitBusy
	case errors.Is(err, recipes.ErrRevoked):
		return exitLost
	case errors.Is(err, errConnectOver), isService(err):
		return exitUnavailable
	}
	return exitFailure
}

// isService reports whether err is what the ensemble said, or did not say.
func isService(err error) bool {
	var r *recipes.Error
	var s *session.Error
	return errors.As(err, &r) || errors.As(err, &s) ||
		errors.Is(err, session.ErrAuthFailed) || errors.Is(err, context.DeadlineExceeded)
}
