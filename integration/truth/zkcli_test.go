package truth

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockkeeper/lockkeeper/integration/interop"
)

// zkCli compares what ZooKeeper's own command line prints.
func (s servers) zkCli(t *testing.T) {
	commands := []string{
		"create /cli data", "create /cli data", "create -e /cli/e", "create -s /cli/s-", "create -e -s /cli/es- x", "create -c /cli/c", "create -t 3600000 /cli/t",
		"create /cli/none/x",
		"ls /cli", "ls -s /cli", "ls -R /cli", "ls -w /cli", "ls /none", "ls2 /cli",
		"stat /cli", "stat -w /cli/x", "get /cli", "get -s /cli", "get -w /cli",
		"set /cli other", "set -s -v 1 /cli again", "set -v 1 /cli again",
		"addauth digest u:p", "getAcl /cli", "getAcl -s /cli", "setAcl /cli/t auth:u:p:cdrwa", "getAcl /cli/t", "setAcl -R /cli/c world:anyone:r", "whoami",
		"addWatch -m PERSISTENT_RECURSIVE /cli", "create /cli/watched", "removewatches /cli", "removewatches /none",
		"getEphemerals", "getEphemerals /cli", "getAllChildrenNumber /cli", "getAllChildrenNumber /none",
		"sync /cli", "listquota /cli", "config",
		"delete /cli", "delete -v 7 /cli/watched", "delete /cli/watched", "deleteall /cli", "ls /cli",
	}
	want := told(interop.ZkCli(t, s.real, commands...))
	got := told(interop.ZkCli(t, s.ours, commands...))
	if !slices.Equal(want, got) {
		for i := range max(len(want), len(got)) {
			if w, g := at(want, i), at(got, i); w != g {
				t.Errorf("line %d:\n  real: %s\nzktest: %s", i, w, g)
			}
		}
	}
}

var (
	value     = regexp.MustCompile(`^([cmp]Zxid|ctime|mtime|ephemeralOwner) = (0x0$)?.*`)
	fromWhere = regexp.MustCompile(`127\.0\.0\.1|172\.[0-9.]+`)
	prompt    = regexp.MustCompile(`^\[zk: [^\]]*\] `)
)

// told leaves out what can't be the same. Events come when they come, so lines are
// sorted by what they are about.
func told(lines []string) []string {
	var out, events []string
	for _, line := range lines {
		line = prompt.ReplaceAllString(line, "")
		line = value.ReplaceAllString(line, "$1 = $2")
		line = fromWhere.ReplaceAllString(line, "$$ip")
		switch {
		case line == "WATCHER::":
		case strings.HasPrefix(line, "WatchedEvent"):
			events = append(events, line)
		default:
			out = append(out, line)
		}
	}
	return append(out, events...)
}
