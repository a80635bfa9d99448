package main

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
	"github.com/lockkeeper/lockkeeper/session"
)

// Environment variables that are read.
const (
	envServers = "LOCKKEEPER_SERVERS"
	envAuth    = "LOCKKEEPER_AUTH"
)

// unset is the value of a duration flag that was not given.
const unset = time.Duration(-1 << 63)

// runFlags are the flags of run, as given.
type runFlags struct {
	servers, chroot, owner            string
	auth                              []string
	timeout, connect, wait            time.Duration
	grace, maxHold, lockDelay         time.Duration
	try, verbose                      bool
	tls                               bool
	tlsCA, tlsCert, tlsKey, tlsServer string
}

func (f *runFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.servers, "servers", "", "members of the ensemble: `host:port,…`; port 2181 where left out\n(required, here or in $"+envServers+")")
	fs.StringVar(&f.chroot, "chroot", "", "take every `path` below this one; made if missing")
	fs.DurationVar(&f.timeout, "timeout", session.DefaultTimeout, "session timeout to ask for")
	fs.DurationVar(&f.connect, "connect-timeout", 30*time.Second, "give up if there is no session after this time; 0: never")
	fs.BoolVar(&f.try, "try", false, "do not wait for the lock")
	f.duration(fs, &f.wait, "wait", "give up if the lock is not had after this `duration`, counted from the start\n(default: wait for ever)")
	fs.StringVar(&f.owner, "owner", "", "`name` shown to others that look at the lock (default host/pid)")
	f.duration(fs, &f.grace, "grace", "`duration` that the command has to end by itself when the lock is being lost;\nat most a third of the session timeout (default 2s, or a fifth of the\nsession timeout or of -max-hold if that is less)")
	f.duration(fs, &f.maxHold, "max-hold", "end the command when it has held the lock for this `duration`\n(default: no limit)")
	f.duration(fs, &f.lockDelay, "lock-delay", "if we die or lose the lock, keep it closed to others for this `duration`,\n1ms to 24h (default: none)")
	fs.Func("auth", "identity to present, as `scheme:credentials`; may be repeated. Arguments can\nbe seen by other users: $"+envAuth+", one identity a line, is safer", func(s string) error {
		f.auth = append(f.auth, s) // checked later: an error here would quote it
		return nil
	})
	fs.BoolVar(&f.tls, "tls", false, "use TLS; implied by the flags that follow")
	fs.StringVar(&f.tlsCA, "tls-ca", "", "PEM `file` of the authorities to trust (default: the system's)")
	fs.StringVar(&f.tlsCert, "tls-cert", "", "PEM `file` of our certificate")
	fs.StringVar(&f.tlsKey, "tls-key", "", "PEM `file` of its key")
	fs.StringVar(&f.tlsServer, "tls-server-name", "", "`name` to expect in the servers' certificates (default: the host in -servers)")
	fs.BoolVar(&f.verbose, "v", false, "say on stderr what happens")
}

// duration is fs.DurationVar for a flag without a default.
func (f *runFlags) duration(fs *flag.FlagSet, p *time.Duration, name, usage string) {
	*p = unset
	fs.Func(name, usage, func(s string) error {
		d, err := time.ParseDuration(s)
		if err == nil && d < 0 {
			err = fmt.Errorf("want 0 or more")
		}
		*p = d
		return err
	})
}

// check refuses values that can't be right. It sends nothing.
func (f *runFlags) check() error {
	switch {
	case f.try && f.wait != unset:
		return usagef("-try and -wait exclude each other")
	case f.wait == 0:
		return usagef("-wait 0: want more than 0; -try does not wait")
	case f.connect < 0:
		return usagef("-connect-timeout %v: want 0 or more", f.connect)
	case f.timeout <= 0:
		return usagef("-timeout %v: want more than 0", f.timeout)
	case (f.tlsCert == "") != (f.tlsKey == ""):
		return usagef("-tls-cert and -tls-key go together")
	case f.maxHold == 0:
		return usagef("-max-hold 0: want more than 0")
	}
	if f.maxHold != unset && f.grace != unset && f.grace >= f.maxHold {
		return usagef("-grace %v is not less than -max-hold %v", f.grace, f.maxHold)
	}
	_, err := f.graceWithin(f.timeout)
	return err
}

// graceWithin returns the grace for a session with that timeout. The trust
// window of a healthy session goes down to 0.43 of the timeout between two
// heartbeats, and one commit brings it to 0.35 in the worst case, so more than a
// third would end commands for nothing.
func (f *runFlags) graceWithin(timeout time.Duration) (time.Duration, error) {
	if f.grace == unset {
		grace := min(2*time.Second, timeout/5)
		if f.maxHold != unset {
			grace = min(grace, f.maxHold/5)
		}
		return grace, nil
	}
	if limit := timeout / 3; f.grace > limit {
		if timeout != f.timeout {
			return 0, usagef("-grace %v is too long: the ensemble granted a session timeout of %v, not %v, and the grace can be a third of it at most, %v",
				f.grace, timeout, f.timeout, limit.Truncate(time.Millisecond))
		}
		return 0, usagef("-grace %v is too long for the session timeout of %v: it can be a third of it at most, %v",
			f.grace, timeout, limit.Truncate(time.Millisecond))
	}
	return f.grace, nil
}

// sessionConfig makes the configuration. It reads files, and sends nothing.
func (f *runFlags) sessionConfig(log *slog.Logger) (session.Config, error) {
	cfg := session.Config{Chroot: f.chroot, Timeout: f.timeout, Logger: log}
	var err error
	if cfg.Servers, err = parseServers(f.servers); err != nil {
		return cfg, err
	}
	if cfg.Chroot != "" && cfg.Chroot != "/" {
		if err := session.ValidatePath(cfg.Chroot); err != nil {
			return cfg, usagef("-chroot: %w", err)
		}
	}
	if cfg.Auth, err = parseAuth(f.auth); err != nil {
		return cfg, err
	}
	cfg.TLS, err = f.tlsConfig()
	return cfg, err
}

func parseServers(list string) ([]string, error) {
	from := "-servers"
	if list == "" {
		from, list = "$"+envServers, os.Getenv(envServers)
	}
	if list == "" {
		return nil, usagef("no servers: give -servers host:port,… or set %s", envServers)
	}
	if strings.Contains(list, "/") {
		return nil, usagef("%s: %q: want host:port,…; a path goes to -chroot", from, list)
	}
	var servers []string
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			return nil, usagef("%s: %q has an empty element", from, list)
		}
		if _, _, err := net.SplitHostPort(s); err != nil {
			s = net.JoinHostPort(strings.Trim(s, "[]"), "2181")
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// parseAuth never quotes what it was given.
func parseAuth(list []string) ([]session.Auth, error) {
	from := "-auth"
	if len(list) == 0 {
		from = "$" + envAuth
		for line := range strings.Lines(os.Getenv(envAuth)) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				list = append(list, line)
			}
		}
	}
	var auth []session.Auth
	for i, s := range list {
		scheme, credentials, ok := strings.Cut(s, ":")
		if !ok || scheme == "" {
			return nil, usagef("%s, number %d: want scheme:credentials, such as digest:user:password", from, i+1)
		}
		if user, password, ok := strings.Cut(credentials, ":"); scheme == "digest" && (!ok || user == "" || password == "") {
			return nil, usagef("%s, number %d: want digest:user:password", from, i+1)
		}
		auth = append(auth, session.Auth{Scheme: scheme, Credentials: credentials})
	}
	return auth, nil
}

func (f *runFlags) tlsConfig() (*tls.Config, error) {
	if !f.tls && f.tlsCA == "" && f.tlsCert == "" && f.tlsServer == "" {
		return nil, nil
	}
	cfg := &tls.Config{ServerName: f.tlsServer}
	if f.tlsCA != "" {
		pem, err := os.ReadFile(f.tlsCA)
		if err != nil {
			return nil, usagef("-tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("-tls-ca: no certificate in %s", f.tlsCA)
		}
	}
	if f.tlsCert != "" {
		cert, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey)
		if err != nil {
			return nil, usagef("-tls-cert, -tls-key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return cfg, nil
}

// lockOptions returns the options of the lock and what they add up to.
func (f *runFlags) lockOptions(log *slog.Logger) ([]recipes.Option, recipes.Settings, error) {
	opts := []recipes.Option{recipes.Logger(log)}
	if f.owner != "" {
		opts = append(opts, recipes.Owner(f.owner))
	}
	if f.maxHold != unset {
		opts = append(opts, recipes.MaxHold(f.maxHold))
	}
	if f.lockDelay != unset {
		opts = append(opts, recipes.LockDelay(f.lockDelay))
	}
	set, err := recipes.NewSettings(opts, nil)
	if err != nil {
		return nil, set, &failure{exitUsage, err}
	}
	return opts, set, nil
}
