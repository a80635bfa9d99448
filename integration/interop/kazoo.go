package interop

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// PythonEnv names the variable that chooses the Python interpreter which has
// kazoo. Default: python3 as found first, or the system's.
const PythonEnv = "LOCKKEEPER_PYTHON"

//go:embed hold.py
var holdPy string

// kazooName is what kazoo calls the nodes of its Lock.
const kazooName = "__lock__"

// Kazoo starts a process that uses kazoo's Lock on the path, told to respect
// nodes named "lock-" too (extra_lock_patterns). Its own nodes are named
// "__lock__": a library has to know that name to respect it, and Curator does not.
func Kazoo(t testing.TB, servers, path string, timeout time.Duration) *Client {
	t.Helper()
	return kazoo(t, servers, path, kazooName, timeout)
}

// KazooNamed is Kazoo with nodes of another name, such as Curator's "lock-".
func KazooNamed(t testing.TB, servers, path, name string, timeout time.Duration) *Client {
	t.Helper()
	return kazoo(t, servers, path, name, timeout)
}

func kazoo(t testing.TB, servers, path, name string, timeout time.Duration) *Client {
	t.Helper()
	python, err := findKazoo()
	if err != nil {
		missing(t, "kazoo", err)
	}
	return Start(t, "kazoo", exec.Command(python, "-c", holdPy, servers, path, name, fmt.Sprint(timeout.Seconds())))
}

// findKazoo returns the first interpreter that has kazoo.
var findKazoo = sync.OnceValues(func() (string, error) {
	candidates := []string{"python3", "/usr/bin/python3"} // a version manager may hide the system's
	if p := os.Getenv(PythonEnv); p != "" {
		candidates = []string{p}
	}
	var errs []error
	for _, python := range candidates {
		out, err := exec.Command(python, "-c", "import kazoo").CombinedOutput()
		if err == nil {
			return python, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w %s", python, err, lastLine(out)))
	}
	return "", errors.Join(errs...)
})
