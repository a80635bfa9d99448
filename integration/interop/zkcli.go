package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// ZkCli gives commands to ZooKeeper's own command line, one a line, and returns
// what it prints until it ends; of the exceptions only the names and messages.
// What the shell says of itself is left out.
func ZkCli(t testing.TB, server string, commands ...string) []string {
	t.Helper()
	classPath, err := findZkCli()
	if err != nil {
		missing(t, "zkCli", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classPath,
		"org.apache.zookeeper.ZooKeeperMain", "-server", server, "-waitforconnection")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\nquit\n")
	out, err := cmd.CombinedOutput()
	// It fails itself if the last command has failed.
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed || !strings.Contains(string(out), "Welcome to") {
		t.Fatalf("zkCli: %v; it said:\n%s", err, out)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || strings.HasPrefix(line, "Connecting to ") || strings.HasPrefix(line, "Welcome to ") ||
			strings.HasPrefix(line, "JLine support ") || strings.HasPrefix(line, "\tat ") {
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

// findZkCli returns the class path, if there is a Java.
var findZkCli = sync.OnceValues(func() (string, error) {
	if out, err := exec.Command("java", "-version").CombinedOutput(); err != nil {
		return "", fmt.Errorf("java: %w %s", err, lastLine(out))
	}
	var jars []string
	var errs []error
	for _, j := range []struct{ pkg, jar string }{
		{"libzookeeper-java", "zookeeper.jar"}, // it names what else it needs
		{"libslf4j-java", "slf4j-simple.jar"},
	} {
		path, err := fileOf(j.pkg, j.jar)
		jars, errs = append(jars, path), append(errs, err)
	}
	return strings.Join(jars, string(os.PathListSeparator)), errors.Join(errs...)
})
