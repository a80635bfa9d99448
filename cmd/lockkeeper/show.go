package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes/inspect"
	"github.com/lockkeeper/lockkeeper/session"
)

const showHelp = `show says who holds the lock at PATH and who waits for it, holders first, then in the
order of the queue. It finds out itself what kind of lock it is: a mutex, a fair lock
(with those who wait in the queues of their flows), a read/write lock, a semaphore, an
election. It only reads: those in line don't notice.

    /locks/orders at 2026-03-01T09:30:10Z: fair, 1 holds, 2 wait
    PLACE  STATE    FLOW      OWNER      TOKEN       SINCE                 AGE
    0      holding  tenant-a  web1/4711  4294967299  2026-03-01T09:30:00Z  10s
    1      waiting  tenant-b  web2/815   4294967311  2026-03-01T09:30:05Z  5.2s
    2      waiting  tenant-a  web1/4712  4294967305  2026-03-01T09:30:02Z  8.1s

A read/write lock has a column KIND, a semaphore PERMITS (asked for) and SLOTS (had).
SINCE is when somebody queued, by the server's clock; AGE is how long ago that is, the
time of holding included. The server tells nobody the time, so AGE is counted by our
clock: it is wrong by as much as that is ahead of the server's. Owners and flows are
quoted where they have spaces, quotes or control characters, and cut where they are
long. Where nobody is in line, or nothing is at PATH, that is said, with exit code 0; a
path that is no lock is refused, with exit code 118.

With -watch it says so again after each change, twice a second at most, with an empty
line between; what came and went in between may be left out. On a terminal it draws
the table anew in its place. It goes on over lost connections until it is interrupted.

With -json it prints one object in one line; with -watch, one for each change:

    path        PATH
    recipe      mutex, fair, rwlock, semaphore or election; left out where nobody has
                used PATH yet
    size        of a semaphore
    time        when it was so, by the server's clock as far as it is known
    contenders  a list, in the order of the table, of objects with
        place     0 for those who hold, from 1 for those who wait
        holding   true or false
        owner     as given with -owner
        flow      of a fair lock
        kind      lock, read, write, lease or candidate
        token     the fencing token that it has, or will have: a number of up to 64 bits
        permits   of a semaphore: how many it asks for
        slots     of a semaphore: a list of those that it has
        since     when it queued, by the server's clock
        id        the name of its node
        age_ms    how long ago since is, in milliseconds

Times are as in RFC 3339. What does not apply is left out. It is true of one moment: to
decide whether to write, use the token.
`

func showSubcommand() subcommand {
	return subcommand{
		name:     "show",
		synopsis: "show [flags] PATH",
		summary:  "say who holds the lock at PATH, and who waits",
		help:     showHelp,
		flags: func(fs *flag.FlagSet) func([]string) error {
			var f showFlags
			f.connFlags.register(fs)
			fs.BoolVar(&f.watch, "watch", false, "go on, and show what changes")
			fs.BoolVar(&f.json, "json", false, "print JSON, for programs")
			return func(args []string) error {
				cfg, err := f.lookConfig("show", args)
				if err != nil {
					return err
				}
				return f.show(cfg, args[0], os.Stdout)
			}
		},
	}
}

// showFlags are the flags of show, as given.
type showFlags struct {
	connFlags
	watch, json bool
}

// showEvery is how often -watch looks at most.
const showEvery = 500 * time.Millisecond

// show writes who is in line, again and again if it is to watch.
func (f *showFlags) show(cfg session.Config, path string, out *os.File) error {
	write := writeTable
	if f.json {
		write = writeJSON
	}
	return f.look(cfg, func(ctx context.Context, sess *session.Session) error {
		o, err := inspect.New(sess, path)
		if err != nil {
			return err
		}
		switch {
		case f.watch && !f.json && isScreen(out):
			return redraw(ctx, sess, o, out)
		case f.watch:
			return f.watchQueue(ctx, o, write, out)
		}
		ctx, cancel := f.connectLimit(ctx)
		defer cancel()
		q, err := o.Look(ctx)
		if err != nil {
			return err
		}
		return write(out, q)
	})
}

func (f *showFlags) watchQueue(ctx context.Context, o *inspect.Observer, write func(io.Writer, inspect.Queue) error, out io.Writer) error {
	first := true
	for q, err := range o.Watch(ctx, showEvery) {
		if err == nil && !f.json && !first {
			_, err = io.WriteString(out, "\n")
		}
		if err == nil {
			err = write(out, q)
		}
		if err != nil {
			return err
		}
		first = false
	}
	return context.Cause(ctx)
}

func writeJSON(w io.Writer, q inspect.Queue) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(q)
}

func writeTable(w io.Writer, q inspect.Queue) error {
	for _, line := range table(q) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
