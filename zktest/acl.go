package zktest

import (
	"crypto/sha1"
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

const (
	permRead int32 = 1 << iota
	permWrite
	permCreate
	permDelete
	permAdmin
)

var (
	openACL = []jute.ACL{{Perms: 0x1f, Scheme: "world", ID: "anyone"}}
	readACL = []jute.ACL{{Perms: permRead, Scheme: "world", ID: "anyone"}}
)

// identity is what a connection has proved to be.
type identity struct{ scheme, id string }

// authenticate turns credentials into an identity, as far as this server knows
// the scheme: digest ("user:password") and ip (the peer's address).
func authenticate(scheme string, credentials []byte, peer string) (identity, bool) {
	switch scheme {
	case "digest":
		user, _, _ := strings.Cut(string(credentials), ":")
		sum := sha1.Sum(credentials)
		return identity{scheme, user + ":" + base64.StdEncoding.EncodeToString(sum[:])}, true
	case "ip":
		return identity{scheme, peer}, true
	}
	return identity{}, false
}

// allowed reports whether an ACL grants perm to one of the identities. An empty
// ACL, which no client can set, grants everything.
func allowed(acl []jute.ACL, perm int32, ids []identity) bool {
	if len(acl) == 0 {
		return true
	}
	return slices.ContainsFunc(acl, func(a jute.ACL) bool {
		if a.Perms&perm == 0 {
			return false
		}
		if a.Scheme == "world" && a.ID == "anyone" {
			return true
		}
		return slices.ContainsFunc(ids, func(id identity) bool {
			return id.scheme == a.Scheme && matches(a, id)
		})
	})
}

func matches(a jute.ACL, id identity) bool {
	if a.Scheme != "ip" {
		return a.ID == id.id
	}
	net, ok := parseNet(a.ID)
	addr, err := netip.ParseAddr(id.id)
	return ok && err == nil && net.Contains(addr)
}

// parseNet reads "10.0.0.1" or "10.0.0.0/8".
func parseNet(s string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), true
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr, addr.BitLen()), true
}

func isNet(s string) bool {
	_, ok := parseNet(s)
	return ok
}

// resolveACL checks the ACL of a request, drops what it says twice, and puts
// the connection's identities in the place of the scheme auth.
func resolveACL(acl []jute.ACL, ids []identity) ([]jute.ACL, Code) {
	var resolved []jute.ACL
	for i, a := range acl {
		switch {
		case slices.Contains(acl[:i], a):
		case a.Scheme == "world" && a.ID == "anyone":
			resolved = append(resolved, a)
		case a.Scheme == "auth":
			proved := false
			for _, id := range ids {
				// An address is no proof of who someone is.
				if id.scheme == "digest" {
					proved = true
					resolved = append(resolved, jute.Entry(a.Perms, id.scheme, id.id))
				}
			}
			if !proved {
				return nil, InvalidACL
			}
		case a.Scheme == "digest" && strings.Count(a.ID, ":") == 1:
			resolved = append(resolved, a)
		case a.Scheme == "ip" && isNet(a.ID):
			resolved = append(resolved, a)
		default:
			return nil, InvalidACL
		}
	}
	if len(resolved) == 0 {
		return nil, InvalidACL
	}
	return resolved, codeOK
}

// maskACL hides the password digests from those who may read but not
// administer a node.
func maskACL(acl []jute.ACL) []jute.ACL {
	masked := slices.Clone(acl)
	for i, a := range masked {
		if user, _, ok := strings.Cut(a.ID, ":"); ok && a.Scheme == "digest" {
			masked[i].ID = user + ":x"
		}
	}
	return masked
}
