package recipes

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// An Option adjusts a lock. Options that a lock does not know, or values that
// can't be right, fail its constructor: none is ignored. Where one is given twice,
// the last counts, unless it says otherwise.
type Option interface {
	apply(*Settings) error
}

// Owner names the contender to people and tools: [Contender.Owner]. It has no
// part in who gets the lock. 1 to 256 bytes of printable UTF-8; the default is
// "host/pid".
func Owner(name string) Option {
	return optionFunc(func(s *Settings) error {
		if name == "" || len(name) > 256 || !utf8.ValidString(name) || strings.ContainsFunc(name, notPrintable) {
			return fmt.Errorf("%w: Owner(%q): want 1 to 256 bytes of printable UTF-8", ErrInvalid, name)
		}
		s.Owner = name
		return nil
	})
}

func notPrintable(r rune) bool { return !unicode.IsPrint(r) }

// OnRevoke has fn called when a grant of this lock is revoked: exactly once per
// revoked grant, never after a release that came first, and not later than the
// end of the trust window. It runs on a goroutine of its own: a callback that
// blocks or panics delays nobody else, may use the lock and its session, and is
// not waited for. The option may be given several times.
func OnRevoke(fn func(Revocation)) Option {
	return optionFunc(func(s *Settings) error {
		if fn == nil {
			return fmt.Errorf("%w: OnRevoke(nil): want a function", ErrInvalid)
		}
		s.OnRevoke = append(s.OnRevoke, fn)
		return nil
	})
}

// MaxHold revokes a grant that was held for d, with ErrHeldTooLong. It bounds
// how long a stuck holder keeps others out; it can't stop what the holder does.
// More than 0; the default is no limit.
func MaxHold(d time.Duration) Option {
	return optionFunc(func(s *Settings) error {
		if d <= 0 {
			return fmt.Errorf("%w: MaxHold(%v): want more than 0", ErrInvalid, d)
		}
		s.MaxHold = d
		return nil
	})
}

// LockDelay keeps the lock closed for d after a holder with this option died or
// was revoked, so that what the holder had sent before can arrive. After a
// proper release there is no delay. It is the holder's wish, as in Chubby and
// Consul: all contenders of this library respect it, whatever their own options.
// From 1ms to 24h, in whole milliseconds.
func LockDelay(d time.Duration) Option {
	return optionFunc(func(s *Settings) error {
		if d < time.Millisecond || d > 24*time.Hour {
			return fmt.Errorf("%w: LockDelay(%v): want 1ms to 24h", ErrInvalid, d)
		}
		s.LockDelay = d.Truncate(time.Millisecond)
		return nil
	})
}

// Reentrant lets Lock succeed at once under a context that came from a live
// grant of the same lock ([Grant.Context]): it returns a nested grant with the
// same token, without asking the server, and the lock is given up when the last
// of them is released. Without it such a Lock fails with ErrDeadlock.
func Reentrant() Option {
	return optionFunc(func(s *Settings) error { s.Reentrant = true; return nil })
}

// FailOnLoss makes a waiting Lock fail when its place in the queue is lost with
// its session or by deletion. Without it, Lock queues again, at the tail, until
// its context ends.
func FailOnLoss() Option {
	return optionFunc(func(s *Settings) error { s.FailOnLoss = true; return nil })
}

// Logger sends what no call returns (a lost place, a callback that panicked, a
// release repeated in the background) to l. The default is silent.
func Logger(l *slog.Logger) Option {
	return optionFunc(func(s *Settings) error {
		if l == nil {
			return fmt.Errorf("%w: Logger(nil): want a logger", ErrInvalid)
		}
		s.Logger = l
		return nil
	})
}

type optionFunc func(*Settings) error

func (f optionFunc) apply(s *Settings) error { return f(s) }

// Settings is what the options of one lock add up to. It matters to those who
// write a recipe; see [NewSettings].
type Settings struct {
	Owner      string
	OnRevoke   []func(Revocation)
	MaxHold    time.Duration // 0: unlimited
	LockDelay  time.Duration // 0: none
	Reentrant  bool
	FailOnLoss bool
	Logger     *slog.Logger // never nil
	// Extensions are the values of options that belong to one recipe, in the
	// order given; see [Extension].
	Extensions []any
}

// Extension makes an option that belongs to one recipe. A recipe that does not
// know the type of v fails its constructor: see [NewSettings].
func Extension(v any) Option {
	return optionFunc(func(s *Settings) error {
		s.Extensions = append(s.Extensions, v)
		return nil
	})
}

// NewSettings applies opts to the defaults. It fails on a nil option, on a bad
// value, and on an [Extension] that known does not accept (known may be nil:
// none is accepted). The error matches ErrInvalid.
func NewSettings(opts []Option, known func(v any) error) (Settings, error) {
	s := Settings{Owner: defaultOwner(), Logger: slog.New(slog.DiscardHandler)}
	for i, o := range opts {
		if o == nil {
			return Settings{}, fmt.Errorf("%w: option %d is nil", ErrInvalid, i)
		}
		if err := o.apply(&s); err != nil {
			return Settings{}, err
		}
	}
	for _, v := range s.Extensions {
		if known == nil {
			return Settings{}, fmt.Errorf("%w: option %T is not for this lock", ErrInvalid, v)
		}
		if err := known(v); err != nil {
			return Settings{}, err
		}
	}
	return s, nil
}

var defaultOwner = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return host + "/" + strconv.Itoa(os.Getpid())
})
