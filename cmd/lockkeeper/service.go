package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// A service is what a lock is on, once it has been reached: an ensemble, or Redis.
type service struct {
	// timeout is how long the lock stays ours without news: that of the session, or
	// the time to live.
	timeout time.Duration
	kind    func() (kind, error) // makes the lock that the flags ask for
	close   func()
}

// place finds out where the lock is, and checks what goes with that. It sends nothing.
func (f *runFlags) place(fs *flag.FlagSet, j *job) error {
	given := make(map[string]bool)
	fs.Visit(func(fl *flag.Flag) { given[fl.Name] = true })
	from, url, err := f.source(given)
	if err != nil {
		return err
	}
	if from == "" {
		return f.onZooKeeper(j)
	}
	if err := fits(fs, given, from); err != nil {
		return err
	}
	if err := checkRedis(j.path, f.timeout); err != nil {
		return err
	}
	f.redis, err = parseRedisURL(from, url, f.timeout)
	return err
}

// reach connects to where the lock is.
func (f *runFlags) reach(ctx context.Context, j *job) (*service, error) {
	if f.redis != nil {
		return f.reachRedis(ctx, j)
	}
	sess, err := j.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &service{
		timeout: sess.Timeout(),
		kind:    func() (kind, error) { return f.kind(sess, j.path, j.opts) },
		close:   func() { sess.Close() },
	}, nil
}

// reachRedis tries until a server answers, as session.Open does.
func (f *runFlags) reachRedis(ctx context.Context, j *job) (*service, error) {
	logging.Disable() // what it would say, and on stderr, comes back as an error
	ctx, cancel := f.connectLimit(ctx)
	defer cancel()
	rdb := f.redis.open()
	var last error
	for {
		c, err := newRedisClient(ctx, rdb, recipes.Logger(j.log))
		switch {
		case err == nil:
			j.log.Info("connected", "timeout", f.timeout)
			opts := append(j.opts, fallback.TTL(f.timeout))
			return &service{
				timeout: f.timeout,
				kind:    func() (kind, error) { return f.redisKind(c, j.path, opts) },
				close:   func() { closeRedis(c, rdb) },
			}, nil
		case ctx.Err() != nil:
			rdb.Close()
			return nil, notReached(context.Cause(ctx), last)
		case errors.Is(err, recipes.ErrInvalid): // it answers, and is not fit for locks
			rdb.Close()
			return nil, &failure{exitUnavailable, err}
		}
		last = err
		j.log.Info("not connected", "error", err)
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// newRedisClient is fallback.New, which takes up to five seconds, for as long as ctx
// lets it. If that ends first, New ends with rdb.
func newRedisClient(ctx context.Context, rdb redis.UniversalClient, opts ...recipes.Option) (c *fallback.Client, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err = fallback.New(rdb, opts...)
	}()
	select {
	case <-done:
		return c, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// notReached says why there is no connection: our deadlines are of no use without what
// went wrong meanwhile, nor is errWaitOver to those who want to know whether it is busy.
func notReached(cause, last error) error {
	switch {
	case errors.As(cause, new(signalled)):
		return cause
	case last == nil:
		return &failure{exitUnavailable, cause}
	}
	return &failure{exitUnavailable, fmt.Errorf("%w (last: %w)", cause, last)}
}

// closeRedis gives back what is held or waited for, within reason: what the server does
// not hear of in time ends there by itself.
func closeRedis(c *fallback.Client, rdb redis.UniversalClient) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Close()
		rdb.Close()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
	}
}

// onZooKeeper checks what the session and the lock's path are made of.
func (f *connFlags) onZooKeeper(j *job) error {
	if err := session.ValidatePath(j.path); err != nil {
		return &failure{exitUsage, err}
	}
	var err error
	j.config, err = f.sessionConfig(j.log)
	return err
}
