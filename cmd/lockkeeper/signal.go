package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
)

// A signalled error is the cause of a context that a signal ended.
type signalled struct{ sig os.Signal }

func (s signalled) Error() string { return "ended by signal: " + s.sig.String() }

// takeSignals has signals come to us from now on. Those that were ignored when we
// were started stay so.
func takeSignals() chan os.Signal {
	c := make(chan os.Signal, 16)
	for _, s := range forwarded {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c
}

// anySignal is for those whom all signals end that they are sent.
func anySignal(os.Signal) bool { return true }

// untilSignal returns a context that the next signal ends for which ends is true,
// with a signalled error as its cause; others are dropped. Once stop has returned,
// signals are left to others.
func untilSignal(parent context.Context, signals <-chan os.Signal, ends func(os.Signal) bool) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case s := <-signals:
				if ends(s) {
					cancel(signalled{s})
					return
				}
			case <-quit:
				return
			}
		}
	}()
	var stopped bool
	return ctx, func() {
		if !stopped {
			stopped = true
			close(quit)
			<-done
		}
	}
}

// pending returns the signal that ended ctx, which comes from untilSignal and was
// stopped, or one that came since.
func pending(ctx context.Context, signals <-chan os.Signal, ends func(os.Signal) bool) (os.Signal, bool) {
	var cause signalled
	if errors.As(context.Cause(ctx), &cause) {
		return cause.sig, true
	}
	for {
		select {
		case s := <-signals:
			if ends(s) {
				return s, true
			}
		default:
			return nil, false
		}
	}
}
