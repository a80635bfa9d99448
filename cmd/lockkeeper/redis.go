package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockkeeper/lockkeeper/fallback"
)

const envRedis = "LOCKKEEPER_REDIS"

// zooKeeperOnly are the flags of run that mean nothing on Redis.
var zooKeeperOnly = []string{
	"servers", "chroot", "auth", "tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name",
	"flow", "weight", "by-hold-time",
}

// redisFlags say that the lock is on Redis, and where that is.
type redisFlags struct {
	url string
}

func (f *redisFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.url, "redis", "", "hold the lock on Redis, at this `URL`, instead of ZooKeeper: see below.\nArguments can be seen by other users: $"+envRedis+" is safer where there is\na password")
}

// source returns the URL and where it comes from, "" if the lock is not on Redis. The
// environment counts where no flag says otherwise, and only where it says one thing: a
// lock must not come to be another's by what somebody has exported.
func (f *redisFlags) source(given map[string]bool) (from, url string, err error) {
	switch fromEnv := os.Getenv(envRedis); {
	case given["redis"] && given["servers"]:
		return "", "", usagef("-servers and -redis exclude each other: the lock is on ZooKeeper or on Redis")
	case given["redis"]:
		return "-redis", f.url, nil
	case given["servers"] || fromEnv == "":
		return "", "", nil
	case os.Getenv(envServers) != "":
		return "", "", usagef("both %s and %s are set: say with -servers or -redis where the lock is, or unset one", envServers, envRedis)
	default:
		return "$" + envRedis, fromEnv, nil
	}
}

// fits refuses flags that mean nothing on Redis.
func fits(fs *flag.FlagSet, given map[string]bool, from string) error {
	not := make(map[string]bool)
	for _, name := range zooKeeperOnly {
		not[name] = true
	}
	for _, name := range zooKeeperOnly {
		if given[name] {
			var allowed []string
			fs.VisitAll(func(fl *flag.Flag) {
				if !not[fl.Name] && fl.Name != "redis" {
					allowed = append(allowed, "-"+fl.Name)
				}
			})
			return usagef("-%s is for ZooKeeper, and %s says Redis, where there are %s", name, from, strings.Join(allowed, ", "))
		}
	}
	return nil
}

// A redisURL is what a URL says. One of the two is set.
type redisURL struct {
	single  *redis.Options
	cluster *redis.ClusterOptions
}

// parseRedisURL takes what redis.ParseURL does, and several hosts with commas between
// for a Cluster. Its errors never quote the URL, nor what package redis says of it: a
// password with unescaped characters in it can turn up as any part of one.
func parseRedisURL(from, text string, ttl time.Duration) (*redisURL, error) {
	fail := func(format string, args ...any) (*redisURL, error) {
		return nil, usagef("%s: %s (it is not shown, since it may have a password)", from, fmt.Sprintf(format, args...))
	}
	scheme, rest, _ := strings.Cut(text, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@') + 1
	hosts, tail := strings.Split(rest[at:end], ","), rest[end:]
	switch {
	case scheme != "redis" && scheme != "rediss" && scheme != "unix" || rest == "":
		return fail("want redis://[USER:PASSWORD@]HOST[:PORT][,…][/DB], rediss:// for TLS, or unix:///SOCKET")
	case strings.Contains(tail, "#"), scheme != "unix" && strings.Contains(tail, "@"):
		return fail("user and password must have %%XX instead of / ? # @ and other special characters")
	case scheme == "unix" && rest[at:end] != "":
		return fail("want unix:///SOCKET, with three slashes")
	}
	var addrs []string
	for _, h := range hosts {
		if scheme == "unix" {
			break
		}
		addr, ok := redisAddr(h)
		if !ok {
			return fail("want HOST or HOST:PORT, with commas between if there are several; user and password must have %%XX instead of special characters")
		}
		addrs = append(addrs, addr)
	}
	first := scheme + "://" + rest[:at] + hosts[0] + tail
	const wrong = "the database is no number, or an option (?name=value) is unknown or has no such value, or special characters are not escaped"
	u := &redisURL{}
	var read *time.Duration
	if len(addrs) > 1 {
		o, err := redis.ParseClusterURL(first)
		switch path, _, _ := strings.Cut(tail, "?"); {
		case path != "" && path != "/" && path != "/0":
			return fail("a Cluster, with several hosts, has no databases: want no /DB")
		case err != nil:
			return fail(wrong)
		}
		o.Addrs, o.DialerRetries = addrs, 1
		if o.TLSConfig != nil {
			o.TLSConfig.ServerName = "" // of each host, its own
		}
		o.MaintNotificationsConfig = noNotices()
		u.cluster, read = o, &o.ReadTimeout
	} else {
		o, err := redis.ParseURL(first)
		if err != nil || o.DB < 0 {
			return fail(wrong)
		}
		o.DialerRetries = 1 // we try again ourselves
		o.MaintNotificationsConfig = noNotices()
		u.single, read = o, &o.ReadTimeout
	}
	switch {
	case *read < 0:
		return fail("read_timeout: want more than 0")
	case *read == 0:
		*read = min(3*time.Second, ttl/3) // a lost answer is no lost lock
	}
	return u, nil
}

// noNotices leaves out what package redis would ask of servers of one vendor.
func noNotices() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// redisAddr adds the default port, and the default host.
func redisAddr(s string) (addr string, ok bool) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"), "6379"
		if strings.ContainsAny(host, "[]") || host == s && strings.Contains(s, ":") || host == "" {
			return "", false
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return net.JoinHostPort(host, port), err == nil && n > 0 && host != ""
}

// open makes a client, which connects when it is used.
func (u *redisURL) open() redis.UniversalClient {
	if u.cluster != nil {
		return redis.NewClusterClient(u.cluster)
	}
	return redis.NewClient(u.single)
}

// checkRedis refuses what can't be right on Redis. It sends nothing.
func checkRedis(key string, ttl time.Duration) error {
	switch {
	case len(key) == 0 || len(key) > 1024:
		return usagef("PATH has %d bytes: on Redis, want a key of 1 to 1024", len(key))
	case ttl < fallback.MinTTL || ttl > fallback.MaxTTL:
		return usagef("-timeout %v: on Redis it is the lock's time to live: want %v to 24h", ttl, fallback.MinTTL)
	}
	return nil
}
