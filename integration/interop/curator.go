package interop

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// ClassPathEnv names the variable with the class path on which Curator's recipes
// and what they need are found. Default: the jars of Debian's packages.
const ClassPathEnv = "LOCKKEEPER_CURATOR_CLASSPATH"

//go:embed Hold.java
var holdJava []byte

// CuratorMutex starts a process that uses Curator's InterProcessMutex on the path.
func CuratorMutex(t testing.TB, servers, path string, timeout time.Duration) *Client {
	t.Helper()
	return curator(t, servers, path, "mutex", timeout)
}

// CuratorRead starts a process that uses the read lock of Curator's
// InterProcessReadWriteLock on the path.
func CuratorRead(t testing.TB, servers, path string, timeout time.Duration) *Client {
	t.Helper()
	return curator(t, servers, path, "read", timeout)
}

// CuratorWrite starts a process that uses the write lock of Curator's
// InterProcessReadWriteLock on the path.
func CuratorWrite(t testing.TB, servers, path string, timeout time.Duration) *Client {
	t.Helper()
	return curator(t, servers, path, "write", timeout)
}

func curator(t testing.TB, servers, path, kind string, timeout time.Duration) *Client {
	t.Helper()
	classPath, err := findCurator()
	if err != nil {
		missing(t, "Curator", err)
	}
	source := filepath.Join(t.TempDir(), "Hold.java")
	if err := os.WriteFile(source, holdJava, 0o600); err != nil {
		t.Fatal(err)
	}
	return Start(t, "Curator "+kind, exec.Command("java",
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classPath,
		source, servers, path, kind, fmt.Sprint(timeout.Milliseconds())))
}

// findCurator returns the class path, if there is a Java that can run a source
// file on it.
var findCurator = sync.OnceValues(func() (string, error) {
	modules, err := exec.Command("java", "--list-modules").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("java: %w %s", err, lastLine(modules))
	}
	if !strings.Contains(string(modules), "jdk.compiler@") {
		return "", errors.New("java is no development kit: it can't run source files")
	}
	if p := os.Getenv(ClassPathEnv); p != "" {
		return p, nil
	}
	// The jars name what else they need, and where Debian keeps it, themselves.
	var jars []string
	for _, j := range []struct{ pkg, jar string }{
		{"libcurator-recipes-java", "curator-recipes.jar"},
		{"libcurator-framework-java", "curator-framework.jar"},
		{"libcurator-client-java", "curator-client.jar"},
		{"libslf4j-java", "slf4j-simple.jar"},
	} {
		path, err := fileOf(j.pkg, j.jar)
		if err != nil {
			return "", err
		}
		jars = append(jars, path)
	}
	return strings.Join(jars, string(os.PathListSeparator)), nil
})

// fileOf returns the path of the named file of a Debian package.
func fileOf(pkg, name string) (string, error) {
	out, err := exec.Command("dpkg", "-L", pkg).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("dpkg -L %s: %w %s (%s can name the jars instead)", pkg, err, lastLine(out), ClassPathEnv)
	}
	for path := range strings.Lines(string(out)) {
		if path = strings.TrimSpace(path); filepath.Base(path) == name {
			return path, nil
		}
	}
	return "", fmt.Errorf("package %s has no %s", pkg, name)
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
