package session

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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
	// Servers are the members to connect to, at least one, each as host:port: see
	// ValidateServer. Names are resolved again at each pass through the list.
	Servers []string
	// Chroot is a path below which every other path is taken, and to which
	// ValidatePath applies. It is made if missing. Default, and "/": none.
	Chroot string
	// Timeout is the session timeout to ask for, from MinTimeout to MaxTimeout;
	// default 10s. The ensemble may grant another: see Session.Timeout.
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
		if why := flawOfServer(addr); why != "" {
			return bad("Config.Servers: %q %s: want host:port", addr, why)
		}
	}
	if c.Chroot == "/" {
		c.Chroot = ""
	}
	if c.Chroot != "" {
		if why := flaw(c.Chroot); why != "" {
			return bad("Config.Chroot: path %q %s", c.Chroot, why)
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

// ValidateServer reports whether addr can be one of [Config.Servers]: one host and a
// port from 1 to 65535, as host:port. It resolves nothing. The error says what is wrong
// and matches ErrInvalid.
func ValidateServer(addr string) error {
	if why := flawOfServer(addr); why != "" {
		return fmt.Errorf("%w: server %q %s: want host:port", ErrInvalid, addr, why)
	}
	return nil
}

// flawOfServer says what is wrong with an address; "" if nothing is. A host is whatever
// the dialer can make something of, but not what other clients take as their connect
// string.
func flawOfServer(addr string) string {
	switch {
	case strings.Contains(addr, "/"):
		return "has a /, and a path goes to Config.Chroot"
	case strings.Contains(addr, ","):
		return "has a comma, and each address is an element of its own"
	case !utf8.ValidString(addr) || strings.ContainsFunc(addr, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return "has a space or a control character, or is not UTF-8"
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "is not an address with a port"
	}
	if host == "" {
		return "has no host"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > math.MaxUint16 {
		return "has no port from 1 to 65535"
	}
	return ""
}

// realm names the ensemble and chroot: two sessions with the same realm see the
// same nodes under the same paths.
func (c Config) realm() string {
	servers := slices.Clone(c.Servers)
	slices.Sort(servers)
	return "zookeeper://" + strings.Join(slices.Compact(servers), ",") + c.Chroot
}
