package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/lockkeeper/lockkeeper/zktest"
)

const devHelp = `dev runs a ZooKeeper server inside this process, for development: one node, in
memory, nothing is kept; not for production. Any ZooKeeper client can connect to
it. It runs until it is interrupted.
`

func devSubcommand() subcommand {
	return subcommand{
		name:     "dev",
		synopsis: "dev [flags]",
		summary:  "run a ZooKeeper server for development",
		help:     devHelp,
		flags: func(fs *flag.FlagSet) func([]string) error {
			addr := fs.String("addr", "127.0.0.1:2181", "`host:port` to listen on; port 0 takes a free one")
			tick := new(time.Duration)
			durationOr(fs, tick, "tick", 2*time.Second, "a tick is this `duration`; sessions last 2 to 20 ticks")
			verbose := fs.Bool("v", false, "log sessions and connections to stderr")
			return func(args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q", args[0])
				}
				if *tick < time.Millisecond {
					return usagef("-tick %v: want 1ms or more", *tick)
				}
				if _, port, err := net.SplitHostPort(*addr); err != nil || !validPort(port) {
					return usagef("-addr %q: want host:port, with a port from 0 to 65535", *addr)
				}
				return dev(*addr, *tick, *verbose)
			}
		},
	}
}

func validPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

func dev(addr string, tick time.Duration, verbose bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts := []zktest.Option{zktest.Listen(addr), zktest.TickTime(tick)}
	if verbose {
		h := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})
		opts = append(opts, zktest.Logger(slog.New(h)))
	}
	srv, err := zktest.New(opts...)
	if err != nil {
		return err
	}
	defer srv.Close()
	fmt.Printf("ZooKeeper for development on %s, in memory. Ctrl-C ends it.\n\n", srv.Addr())
	fmt.Printf("    export %s=%s\n", envServers, srv.Addr())
	fmt.Printf("    lockkeeper run /locks/demo -- sh -c 'echo token $LOCKKEEPER_TOKEN; sleep 5'\n")
	<-ctx.Done()
	return nil
}
