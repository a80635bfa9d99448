package main

import (
	"context"

	"github.com/lockkeeper/lockkeeper/session"
)

// lookConfig checks what was given to a subcommand that looks at one path. It sends
// nothing.
func (f *connFlags) lookConfig(subcommand string, args []string) (session.Config, error) {
	switch {
	case len(args) == 0:
		return session.Config{}, usagef("no PATH\nTry: lockkeeper %s -h", subcommand)
	case len(args) > 1:
		return session.Config{}, usagef("%q after PATH: flags go before PATH", args[1])
	}
	if err := session.ValidatePath(args[0]); err != nil {
		return session.Config{}, &failure{exitUsage, err}
	}
	if err := f.check(); err != nil {
		return session.Config{}, err
	}
	return f.sessionConfig(f.logger())
}

// look calls fn with a session, under a context that ends with the next signal.
func (f *connFlags) look(cfg session.Config, fn func(context.Context, *session.Session) error) error {
	ctx, stop := untilSignal(context.Background(), takeSignals(), anySignal)
	defer stop()
	sess, err := f.open(ctx, cfg)
	if err != nil {
		return err
	}
	defer sess.Close()
	return fn(ctx, sess)
}
