package ensemble

import (
	"context"
	"fmt"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/lockkeeper/lockkeeper/integration/docker"
)

// Run starts one server for a program that is no test, and waits until it serves.
// It returns its address, and what removes it again.
func Run(ctx context.Context, opts Options) (addr string, stop func() error, err error) {
	if err := image.Available(); err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	provider, err := docker.Connect(log.NewNoopLogger())
	if err != nil {
		return "", nil, fmt.Errorf("docker: %w", err)
	}
	e := &Ensemble{provider: provider}
	s, err := e.run(ctx, 0, opts.withDefaults().env(1, nil))
	if err != nil {
		provider.Close()
		return "", nil, err
	}
	stop = func() error {
		defer provider.Close()
		return testcontainers.TerminateContainer(s.container, testcontainers.StopTimeout(0))
	}
	for mode(s.addr) != Standalone {
		select {
		case <-ctx.Done():
			err := fmt.Errorf("the server does not come to serve: %w; last lines of its log:\n%s", context.Cause(ctx), s.logTail())
			if left := stop(); left != nil {
				err = fmt.Errorf("%w (and is left behind: %v)", err, left)
			}
			return "", nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
	return s.addr, stop, nil
}
