//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"strings"
	"testing"

	"github.com/lockkeeper/lockkeeper/zktest"
)

// What the flags say comes to the lock: the weight, and what is shared.
func TestRunFlow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags  []string
		weight string
		shares bool // of time
	}{
		"Default":    {nil, "weight=1", false},
		"Weight":     {[]string{"-weight", "3"}, "weight=3", false},
		"ByHoldTime": {[]string{"-by-hold-time", "-weight", "2"}, "weight=2", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Start(t)
			r := start(t, srv, "echo $LOCKKEEPER_FLOW", append(tt.flags, "-flow", "tenant a")...)
			r.expect("tenant a")
			r.wantCode(0)
			flow := lockPath + ".flows/tenant%20a"
			if data, _ := srv.Data(flow + "/queue"); !strings.Contains(string(data)+" ", tt.weight+" ") {
				t.Errorf("%q, want %s", data, tt.weight)
			}
			if data, _ := srv.Data(flow); strings.HasPrefix(string(data), "lockkeeper flow") != tt.shares {
				t.Errorf("the flow's account is %q", data)
			}
		})
	}
}
