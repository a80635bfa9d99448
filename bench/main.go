// Command bench measures the locks of lockkeeper beside those of other libraries, on the
// same server and in the same run, in turns: only ratios mean anything, since machines
// differ and other work disturbs.
//
//	go run ./bench                                   starts a redis-server for itself
//	go run ./bench -redis 127.0.0.1:6379 -zookeeper 127.0.0.1:2181
//
// The servers are used as they are; the locks' names begin with "bench-".
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"text/tabwriter"
	"time"
)

func main() {
	addr := flag.String("redis", "", "`host:port` of a Redis server (default: one is started, by the program redis-server)")
	zk := flag.String("zookeeper", "", "`host:port` of a ZooKeeper server (default: ZooKeeper locks are not measured)")
	each := flag.Duration("for", 2*time.Second, "how long each measurement takes, for each library: more than 0")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "Usage: go run ./bench [flags]\n\nbench measures these locks beside those of other libraries, and prints tables.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 || *each <= 0 {
		fmt.Fprintln(os.Stderr, "bench: want flags only, and more than 0 for -for")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *addr, *zk, *each); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr, zk string, each time.Duration) error {
	if addr == "" {
		own, stop, err := startRedis()
		if err != nil {
			return err
		}
		defer stop()
		addr = own
	}
	libs := redisLibraries(addr)
	if zk != "" {
		libs = append(libs, zookeeperLibraries(zk)...)
	}
	for _, part := range []struct {
		title   string
		measure func(context.Context, []library, time.Duration) ([]row, error)
	}{
		{"Lock and unlock, nobody else wants it, one caller", uncontended},
		{"Lock and unlock, 64 callers with a lock each, sharing one client", parallel},
		{"16 clients want one lock, which is released at once", handover},
	} {
		rows, err := part.measure(ctx, libs, each)
		if err != nil {
			return err
		}
		show(part.title, rows)
	}
	return nil
}

// A row is one line of a table.
type row struct {
	name  string
	cells []cell
}

type cell struct{ title, value string }

func show(title string, rows []row) {
	fmt.Printf("\n%s\n\n", title)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\t")
	for _, c := range rows[0].cells {
		fmt.Fprint(w, c.title, "\t")
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprint(w, r.name, "\t")
		for _, c := range r.cells {
			fmt.Fprint(w, c.value, "\t")
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}
