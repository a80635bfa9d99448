//go:build linux || darwin || freebsd || netbsd || openbsd

// The scripts and the tests of loss need a shell and process groups.

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-zookeeper/zk"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// TestMain puts lockkeeper, and a command for it to run, into PATH.
func TestMain(m *testing.M) {
	if base := filepath.Base(os.Args[0]); base != "lockkeeper" && base != "child" {
		// Under nohup and the like a signal is ignored, by our children, too. One that
		// is caught is as usual for them.
		for _, s := range forwarded {
			if signal.Ignored(s) {
				signal.Notify(make(chan os.Signal, 1), s)
			}
		}
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // or each process takes a second longer to end
	testscript.Main(m, map[string]func(){
		"lockkeeper": func() {
			heldByLimit = 20 * time.Second // however busy the machine is
			main()
		},
		"child": child,
	})
}

type serverKey struct{}

func serverOf(ts *testscript.TestScript) *zktest.Server {
	return *ts.Value(serverKey{}).(**zktest.Server)
}

// TestScript runs each script against a server of its own, in LOCKKEEPER_SERVERS.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			srv, err := zktest.New()
			if err != nil {
				return err
			}
			p := &srv
			e.Defer(func() { (*p).Close() })
			e.Values[serverKey{}] = p
			e.Values[redisKey{}] = new(*miniredis.Miniredis)
			e.Setenv(envServers, srv.Addr())
			e.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":    scriptCode,
			"waits":   scriptWaits,
			"server":  scriptServer,
			"silent":  scriptSilent,
			"clean":   scriptClean,
			"held":    scriptHeld,
			"create":  scriptCreate,
			"expire":  scriptExpire,
			"missing": scriptMissing,
			"served":  scriptServed,

			"redis":        scriptRedis,
			"redis-held":   scriptRedisHeld,
			"redis-line":   scriptRedisLine,
			"redis-silent": scriptRedisSilent,
			"redis-clean":  scriptRedisClean,
		},
	})
}

// code N COMMAND… runs a command that has to exit with code N.
func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	code := run(ts, args[1:])
	if want, err := strconv.Atoi(args[0]); err != nil || code != want {
		ts.Fatalf("exit code %d, want %s\n%s", code, args[0], ts.ReadFile("stderr"))
	}
}

// run runs a command and returns its exit code.
func run(ts *testscript.TestScript, command []string) int {
	err := ts.Exec(command[0], command[1:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// waits COMMAND… runs a command with -wait, whose wait has to be over before it has the
// lock. A wait that was over before there was a connection, as on a busy machine, says
// nothing: then it waits for longer.
func scriptWaits(ts *testscript.TestScript, neg bool, args []string) {
	command := slices.Clone(args)
	at := slices.Index(command, "-wait") + 1
	wait, err := time.ParseDuration(command[at])
	ts.Check(err)
	code := run(ts, command)
	for code == exitUnavailable && wait < time.Minute {
		wait *= 2
		command[at] = wait.String()
		code = run(ts, command)
	}
	if code != exitBusy {
		ts.Fatalf("exit code %d after %v, want %d\n%s", code, wait, exitBusy, ts.ReadFile("stderr"))
	}
}

// server MIN MAX starts another server in the place of the first, which grants
// session timeouts between MIN and MAX.
func scriptServer(ts *testscript.TestScript, neg bool, args []string) {
	least, err := time.ParseDuration(args[0])
	ts.Check(err)
	most, err := time.ParseDuration(args[1])
	ts.Check(err)
	srv, err := zktest.New(zktest.SessionTimeouts(least, most))
	ts.Check(err)
	p := ts.Value(serverKey{}).(**zktest.Server)
	(*p).Close()
	*p = srv
	ts.Setenv(envServers, srv.Addr())
}

// silent checks that nothing was sent to the server.
func scriptSilent(ts *testscript.TestScript, neg bool, args []string) {
	var total int
	ts.Check(serverOf(ts).WaitFor(context.Background(), func(v *zktest.View) bool {
		total = v.Requests().Total()
		return true
	}))
	if total != 0 {
		ts.Fatalf("the server has had %d requests", total)
	}
}

// clean PATH checks that nobody is left in the queue at PATH, and no session. What a
// process has sent when it ends may be read a little later. A session that was not
// closed is there for longer: for what is left of its timeout, two thirds or more.
func scriptClean(ts *testscript.TestScript, neg bool, args []string) {
	srv := serverOf(ts)
	if !srv.Exists(args[0]) {
		ts.Fatalf("%s was never used", args[0])
	}
	limit := 5 * time.Second
	for _, s := range srv.Sessions() {
		limit = min(limit, s.Timeout/2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := srv.WaitFor(ctx, func(v *zktest.View) bool { return len(v.Children(args[0])) == 0 && len(v.Sessions()) == 0 })
	if err != nil {
		ts.Fatalf("left in the queue: %q, and sessions: %+v", srv.Children(args[0]), srv.Sessions())
	}
}

// held PATH [N] waits until N contenders (default 1) stand in the queue.
func scriptHeld(ts *testscript.TestScript, neg bool, args []string) {
	n := 1
	if len(args) > 1 {
		var err error
		n, err = strconv.Atoi(args[1])
		ts.Check(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ts.Check(serverOf(ts).WaitFor(ctx, func(v *zktest.View) bool { return len(v.Children(args[0])) == n }))
}

// served PATH N FLOW LINE GATE waits until N contenders stand in the queue of the lock at
// PATH, and of FLOW, LINE in its line, where the holder is not, and GATE before its gate.
// On its way a contender is in several of these at once: wait for what stays.
func scriptServed(ts *testscript.TestScript, neg bool, args []string) {
	flow := args[0] + ".flows/" + args[2]
	want := map[string]string{args[0]: args[1], flow + "/line": args[3], flow + "/queue": args[4]}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ts.Check(serverOf(ts).WaitFor(ctx, func(v *zktest.View) bool {
		for path, n := range want {
			if strconv.Itoa(len(v.Children(path))) != n {
				return false
			}
		}
		return true
	}))
}

// missing PATH… checks that there are no such nodes.
func scriptMissing(ts *testscript.TestScript, neg bool, args []string) {
	for _, path := range args {
		if serverOf(ts).Exists(path) {
			ts.Fatalf("%s is there", path)
		}
	}
}

// create PATH… makes nodes.
func scriptCreate(ts *testscript.TestScript, neg bool, args []string) {
	c, _, err := zk.Connect([]string{serverOf(ts).Addr()}, 10*time.Second, zk.WithLogInfo(false))
	ts.Check(err)
	defer c.Close()
	for _, path := range args {
		for i := range path {
			if i > 0 && path[i] == '/' {
				if _, err := c.Create(path[:i], nil, 0, zk.WorldACL(zk.PermAll)); !errors.Is(err, zk.ErrNodeExists) {
					ts.Check(err)
				}
			}
		}
		_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		ts.Check(err)
	}
}

// expire ends all sessions.
func scriptExpire(ts *testscript.TestScript, neg bool, args []string) {
	for _, s := range serverOf(ts).Sessions() {
		ts.Check(serverOf(ts).Expire(s.ID))
	}
}

// The documentation of the command is its help, word for word.
func TestDocIsTheHelp(t *testing.T) {
	var want strings.Builder
	want.WriteString("// Command lockkeeper holds ZooKeeper locks for shell scripts and people.\n//\n")
	for line := range strings.Lines(documentation()) {
		line = strings.TrimRight(line, "\n")
		if line != "" {
			line = "\t" + line
		}
		want.WriteString("//" + line + "\n")
	}
	want.WriteString("package main\n")
	if os.Getenv("UPDATE_DOC") != "" {
		if err := os.WriteFile("doc.go", []byte(want.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		t.Error("doc.go differs from the help: run UPDATE_DOC=1 go test -run TestDocIsTheHelp")
	}
}
