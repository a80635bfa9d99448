package main

import (
	"fmt"
	"strings"
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
		{unset, s + 1, 40 * s, s / 5},
		{unset, s, 40 * s, -1}, // too short for the command to be started
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

func TestParseRedisURL(t *testing.T) {
	const s = time.Second
	for url, want := range map[string]string{
		"redis://h":                            "tcp [h:6379] 0  ReadTimeout 3s",
		"redis://[::1]/2":                      "tcp [[::1]:6379] 2  ReadTimeout 3s",
		"rediss://u:p%2F,@h:1?read_timeout=1s": "tcp [h:1] 0 u p/, TLS h ReadTimeout 1s",
		"redis://u:p,q@a,b:2,[::1]/":           "cluster [a:6379 b:2 [::1]:6379] u p,q ReadTimeout 3s",
		"rediss://a,b":                         "cluster [a:6379 b:6379]  TLS \"\" ReadTimeout 3s",
		"unix:///run/redis.sock?db=3":          "unix [/run/redis.sock] 3  ReadTimeout 3s",
		"unix://u:p@/run/redis.sock":           "unix [/run/redis.sock] 0 u p ReadTimeout 3s",
	} {
		u, err := parseRedisURL("-redis", url, 10*s)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		var got string
		if o := u.cluster; o != nil {
			got = fmt.Sprint("cluster ", o.Addrs, " ", strings.TrimSpace(o.Username+" "+o.Password))
			if o.TLSConfig != nil {
				got += fmt.Sprintf(" TLS %q", o.TLSConfig.ServerName)
			}
			got += fmt.Sprint(" ReadTimeout ", o.ReadTimeout)
		} else {
			o := u.single
			got = fmt.Sprint(o.Network, " [", o.Addr, "] ", o.DB, " ", strings.TrimSpace(o.Username+" "+o.Password))
			if o.TLSConfig != nil {
				got += " TLS " + o.TLSConfig.ServerName
			}
			got += fmt.Sprint(" ReadTimeout ", o.ReadTimeout)
		}
		if got != want {
			t.Errorf("%s:\n%s, want\n%s", url, got, want)
		}
	}
	// An answer that is lost must not cost the lock.
	if u, err := parseRedisURL("-redis", "redis://h", 3*s); err != nil || u.single.ReadTimeout != s {
		t.Errorf("%v, %v", u, err)
	}
}
