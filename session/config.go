package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Limits of Config.Timeout. The upper one is what fits the protocol.
const (
	DefaultTimeout = 10 * time.Second
	MinTimeout     = 10 * time.Millisecond
	MaxTimeout     = math.MaxInt32 * time.Millisecond
)

// Config says how to reach an ensemble. Only Servers is required.
type Config struct {
	// Servers are the members to connect to, each as host:port. Names are
	// resolved again at each pass through the list.
	Servers []string
	// Chroot is a path below which every other path is taken. It is made if
	// missing. Default: none.
	Chroot string
	// Timeout is the session timeout to ask for; default 10s. The ensemble may
	// grant another: see Session.Timeout.
	Timeout time.Duration
	// Auth is presented on every connection before any other request.
	Auth []Auth
	// ACL is given to the nodes that we make. Default: open to the world.
	ACL []zk.ACL
	// TLS, if set, wraps every connection; the server's name is taken from the
	// address unless it is set.
	TLS *tls.Config
	// Dial replaces the net.Dialer. It is called once for each attempt, with a
	// context that bounds it.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger gets what no call returns: suspensions, losses, retries. Default:
	// silent.
	Logger *slog.Logger
	// RevokeOnSuspend is the strict policy: whatever is held is revoked as soon
	// as the connection is seen to be down, without waiting for the end of the
	// trust window.
	RevokeOnSuspend bool
}

// Auth is one identity, as ZooKeeper's addauth takes it: for example Scheme
// "digest" with Credentials "user:password".
type Auth struct {
	Scheme      string
	Credentials string
}

// String hides the credentials.
func (a Auth) String() string { return a.Scheme + ":***" }

// withDefaults checks c and fills in what was left out. The error says what was
// wrong and what is allowed, and matches ErrInvalid.
func (c Config) withDefaults() (Config, error) {
	bad := func(format string, args ...any) (Config, error) {
		return Config{}, fmt.Errorf("session: %w: %s", ErrInvalid, fmt.Sprintf(format, args...))
	}
	if len(c.Servers) == 0 {
		return bad("Config.Servers is empty: want at least one host:port")
	}
	c.Servers = slices.Clone(c.Servers)
	for _, addr := range c.Servers {
		if err := checkAddr(addr); err != nil {
			return bad("Config.Servers: %q: %v: want host:port", addr, err)
		}
	}
	if c.Chroot == "/" {
		c.Chroot = ""
	}
	if c.Chroot != "" {
		if err := ValidatePath(c.Chroot); err != nil {
			return bad("Config.Chroot: %v", err)
		}
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Timeout < MinTimeout || c.Timeout > MaxTimeout {
		return bad("Config.Timeout is %v: want %v to %v", c.Timeout, MinTimeout, MaxTimeout)
	}
	c.Auth = slices.Clone(c.Auth)
	for i, a := range c.Auth {
		if a.Scheme == "" {
			return bad("Config.Auth[%d] has no Scheme", i)
		}
		if user, password, ok := strings.Cut(a.Credentials, ":"); a.Scheme == "digest" && (!ok || user == "" || password == "") {
			return bad("Config.Auth[%d]: credentials for digest must be user:password", i)
		}
	}
	c.ACL = slices.Clone(c.ACL)
	if len(c.ACL) == 0 {
		c.ACL = zk.WorldACL(zk.PermAll)
	}
	for i, a := range c.ACL {
		if a.Scheme == "" || a.Perms&zk.PermAll == 0 || a.Perms&^zk.PermAll != 0 {
			return bad("Config.ACL[%d] wants a Scheme and Perms between 1 and %d", i, zk.PermAll)
		}
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("not an address with a port")
	}
	if host == "" {
		return errors.New("no host")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > math.MaxUint16 {
		return errors.New("not a port from 1 to 65535")
	}
	return nil
}

// realm names the ensemble and chroot: two sessions with the same realm see the
// same nodes under the same paths.
func (c Config) realm() string {
	servers := slices.Clone(c.Servers)
	slices.Sort(servers)
	return "zookeeper://" + strings.Join(slices.Compact(servers), ",") + c.Chroot
}
