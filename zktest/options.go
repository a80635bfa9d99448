package zktest

import (
	"cmp"
	"errors"
	"log/slog"
	"time"
)

// Option changes what New and Start start.
type Option interface{ apply(*options) }

type options struct {
	listen                 string
	inMemory               bool
	tick                   time.Duration
	minTimeout, maxTimeout time.Duration
	reap                   time.Duration
	noContainers           bool
	allowOpen              bool
	allowGoroutines        bool
	eventZxids             bool
	logger                 *slog.Logger
}

type option func(*options)

func (f option) apply(o *options) { f(o) }

func collect(opts []Option) (options, error) {
	o := options{tick: 2 * time.Second, reap: time.Minute}
	for _, opt := range opts {
		opt.apply(&o)
	}
	if o.inMemory && o.listen != "" {
		return o, errors.New("zktest: InMemory and Listen exclude each other")
	}
	if o.tick < time.Millisecond {
		return o, errors.New("zktest: the tick must be at least 1ms")
	}
	o.listen = cmp.Or(o.listen, "127.0.0.1:0")
	o.minTimeout = cmp.Or(o.minTimeout, 2*o.tick)
	o.maxTimeout = cmp.Or(o.maxTimeout, 20*o.tick)
	if o.minTimeout < time.Millisecond || o.maxTimeout < o.minTimeout {
		return o, errors.New("zktest: session timeouts must be at least 1ms, and max not less than min")
	}
	if o.logger == nil {
		o.logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Listen sets the TCP address; the default is a free port of 127.0.0.1.
func Listen(addr string) Option {
	return option(func(o *options) { o.listen = addr })
}

// InMemory starts a server without TCP: it is reached through Dial only. That
// is the one for testing/synctest.
func InMemory() Option {
	return option(func(o *options) { o.inMemory = true })
}

// TickTime sets the unit of the default session timeouts; the default is 2s.
func TickTime(d time.Duration) Option {
	return option(func(o *options) { o.tick = d })
}

// SessionTimeouts sets the range that the timeouts that clients ask for are
// clamped to; the default is 2 to 20 ticks.
func SessionTimeouts(min, max time.Duration) Option {
	return option(func(o *options) { o.minTimeout, o.maxTimeout = min, max })
}

// ReapInterval sets how often empty containers and nodes past their time to
// live are removed; the default is a minute, and 0 or less is never.
func ReapInterval(d time.Duration) Option {
	return option(func(o *options) { o.reap = d })
}

// WithoutContainers makes a server that is too old for containers and nodes
// with a time to live: it answers such a request with Unimplemented and, as the
// real ones do with any unknown request, closes the connection.
func WithoutContainers() Option {
	return option(func(o *options) { o.noContainers = true })
}

// EventZxids makes watch events carry the zxid of the change that they tell of,
// as those of servers from 3.9 on do. There is nothing in the protocol by which a
// client could ask for it. Without it the zxid of an event is -1, as before 3.9;
// it is -1 also for what a client is told when it sets its watches anew.
func EventZxids() Option {
	return option(func(o *options) { o.eventZxids = true })
}

// AllowOpenSessions lets a test that was given the server by Start end with
// sessions still open, and with the goroutines of their clients.
func AllowOpenSessions() Option {
	return option(func(o *options) { o.allowOpen = true })
}

// AllowGoroutines lets a test that was given the server by Start end with
// goroutines that still run.
func AllowGoroutines() Option {
	return option(func(o *options) { o.allowGoroutines = true })
}

// Logger makes the server tell what happens to sessions and connections, at
// debug level. By default it is silent.
func Logger(l *slog.Logger) Option {
	return option(func(o *options) { o.logger = l })
}
