package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/lockkeeper/lockkeeper/session"
)

// Environment variables that are read.
const (
	envServers = "LOCKKEEPER_SERVERS"
	envAuth    = "LOCKKEEPER_AUTH"
)

// connFlags say how to reach the ensemble.
type connFlags struct {
	servers, chroot                   string
	auth                              []string
	timeout, connect                  time.Duration
	verbose                           bool
	tls                               bool
	tlsCA, tlsCert, tlsKey, tlsServer string
}

func (f *connFlags) register(fs *flag.FlagSet) {
	text(fs, &f.servers, "servers", "members of the ensemble: `host:port,…`; port 2181 where left out\n(required, here or in $"+envServers+")")
	text(fs, &f.chroot, "chroot", "take every `path` below this one; made if missing (default: none)")
	durationOr(fs, &f.timeout, "timeout", session.DefaultTimeout, "ask for a session timeout of this `duration`; servers grant 2 to 20 of their\nticks unless they were told otherwise")
	durationOr(fs, &f.connect, "connect-timeout", 30*time.Second, "give up if there is no session after this `duration`; 0: never")
	fs.Func("auth", "identity to present, as `scheme:credentials`; may be repeated. Arguments can\nbe seen by other users: $"+envAuth+", one identity a line, is safer", func(s string) error {
		f.auth = append(f.auth, s) // checked later: an error here would quote it
		return nil
	})
	fs.BoolVar(&f.tls, "tls", false, "use TLS; implied by the flags that follow")
	text(fs, &f.tlsCA, "tls-ca", "PEM `file` of the authorities to trust (default: the system's)")
	text(fs, &f.tlsCert, "tls-cert", "PEM `file` of our certificate")
	text(fs, &f.tlsKey, "tls-key", "PEM `file` of its key")
	text(fs, &f.tlsServer, "tls-server-name", "`name` to expect in the servers' certificates (default: the host in -servers)")
	fs.BoolVar(&f.verbose, "v", false, "say on stderr what happens")
}

// check refuses values that can't be right. It sends nothing.
func (f *connFlags) check() error {
	switch {
	case f.timeout <= 0:
		return usagef("-timeout %v: want more than 0", f.timeout)
	case (f.tlsCert == "") != (f.tlsKey == ""):
		return usagef("-tls-cert and -tls-key go together")
	}
	return nil
}

// logger is silent unless -v was given.
func (f *connFlags) logger() *slog.Logger {
	if f.verbose {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.DiscardHandler)
}

// open opens the session.
func (f *connFlags) open(ctx context.Context, cfg session.Config) (*session.Session, error) {
	ctx, cancel := f.connectLimit(ctx)
	defer cancel()
	sess, err := session.Open(ctx, cfg)
	if errors.Is(err, errWaitOver) { // of no use to those who want to know whether it is busy
		err = &failure{exitUnavailable, err}
	}
	if err != nil {
		return nil, err
	}
	cfg.Logger.Info("connected", "session", fmt.Sprintf("%#x", sess.ID()), "timeout", sess.Timeout())
	return sess, nil
}

func (f *connFlags) connectLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.connect == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, f.connect, errConnectOver)
}

// sessionConfig makes the configuration. It reads files, and sends nothing.
func (f *connFlags) sessionConfig(log *slog.Logger) (session.Config, error) {
	cfg := session.Config{Chroot: f.chroot, Timeout: f.timeout, Logger: log}
	if f.timeout < session.MinTimeout || f.timeout > session.MaxTimeout {
		return cfg, usagef("-timeout %v: want %v to %v", f.timeout, session.MinTimeout, session.MaxTimeout)
	}
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
		if err := session.ValidateServer(s); err != nil {
			return nil, usagef("%s: %w", from, err)
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

func (f *connFlags) tlsConfig() (*tls.Config, error) {
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
