package main

import (
	"fmt"
	"testing"
	"time"
)

func TestGrace(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		grace, maxHold, timeout, want time.Duration // want -1: refused
	}{
		{unset, unset, 10 * s, 2 * s},
		{unset, unset, 60 * s, 2 * s},
		{unset, unset, 4 * s, 800 * time.Millisecond},
		{unset, 5 * s, 10 * s, s},
		{unset, time.Hour, 10 * s, 2 * s},
		{3 * s, unset, 9 * s, 3 * s},
		{3*s + 1, unset, 9 * s, -1},
		{0, unset, 9 * s, 0},
	} {
		f := holdFlags{connFlags: connFlags{timeout: 10 * s}, grace: tt.grace, maxHold: tt.maxHold}
		got, err := f.graceWithin(tt.timeout)
		if tt.want == -1 {
			if exitCode(err) != exitUsage {
				t.Errorf("%+v: %v, %v, want a usage error", tt, got, err)
			}
			continue
		}
		if got != tt.want || err != nil {
			t.Errorf("%+v: %v, %v", tt, got, err)
		}
	}
}

func TestParseServers(t *testing.T) {
	got, err := parseServers(" zk1, zk2:2182,::1,[fe80::1],[fe80::2]:1")
	want := "[zk1:2181 zk2:2182 [::1]:2181 [fe80::1]:2181 [fe80::2]:1]"
	if s := fmt.Sprint(got); s != want || err != nil {
		t.Errorf("%s, %v, want %s", s, err, want)
	}
}

func TestParseAuthFromEnvironment(t *testing.T) {
	t.Setenv(envAuth, "digest:alice:a:b \n\nip:10.0.0.1\n")
	got, err := parseAuth(nil)
	if err != nil || len(got) != 2 || got[0].Credentials != "alice:a:b " || got[1].Scheme != "ip" {
		t.Errorf("%d identities, %v", len(got), err)
	}
}
