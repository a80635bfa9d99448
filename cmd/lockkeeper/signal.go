package main

import (
	"context"
	"os"
)

// A signalled error is the cause of a context that a signal ended.
type signalled struct{ sig os.Signal }

func (s signalled) Error() string { return "ended by signal: " + s.sig.String() }

// untilSignal returns a context that the next signal ends, with a signalled
// error as its cause. Once stop has returned, signals are left to others.
func untilSignal(parent context.Context, signals <-chan os.Signal) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			cancel(signalled{s})
		case <-quit:
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
