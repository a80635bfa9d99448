package session

import (
	"errors"
	"strings"
	"testing"
)

// What other clients take as their connect string is refused with a word on where its
// parts go, and not looked up as a name.
func TestValidateServer(t *testing.T) {
	for _, addr := range []string{"zk1:2181", "127.0.0.1:1", "[::1]:65535", "[fe80::1%eth0]:2181", "zk_1.example.com.:2181"} {
		if err := ValidateServer(addr); err != nil {
			t.Errorf("%q: %v", addr, err)
		}
	}
	for addr, want := range map[string]string{
		"":                    "want host:port",
		"zk1":                 "not an address with a port",
		"::1":                 "not an address with a port",
		":2181":               "no host",
		"zk1:0":               "1 to 65535",
		"zk1:zk":              "1 to 65535",
		"zk1:2181,zk2:2181":   "element of its own",
		"zk1,zk2:2181":        "element of its own",
		"zk1:2181/app":        "Config.Chroot",
		"zookeeper://zk1:218": "Config.Chroot",
		"zk1 zk2:2181":        "space",
		" zk1:2181":           "space",
		"zk1\x00:2181":        "control",
		"\xff:2181":           "UTF-8",
	} {
		if err := ValidateServer(addr); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", addr, err)
		}
	}
}
