package fallback

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Every key of a lock is prefix:{name}:suffix. Redis Cluster hashes what stands
// between the first pair of braces, so all of them lie in one slot, whatever the
// name contains: braces in it are escaped, and the prefix has none.

var escapeBraces = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D")

// These are the same for every kind of lock: so a lock of one kind is seen to exclude
// one of another, and tokens go on rising when a program changes the kind.
const (
	mainKey  = "lock"
	tokenKey = "lock-token"
)

// keysOf returns the keys of a lock, one for each suffix.
func keysOf(prefix, name string, suffixes []string) []string {
	base := prefix + ":{" + escapeBraces.Replace(name) + "}:"
	keys := make([]string, len(suffixes))
	for i, s := range suffixes {
		keys[i] = base + s
	}
	return keys
}

// maxName keeps keys, which are repeated in every command, within reason.
const maxName = 1024

func validateName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("%w: key %q: want 1 to %d bytes", recipes.ErrInvalid, name, maxName)
	}
	return nil
}

func validatePrefix(prefix string) error {
	if prefix == "" || len(prefix) > 256 || strings.ContainsAny(prefix, "{}") || !utf8.ValidString(prefix) {
		return fmt.Errorf("%w: Prefix(%q): want 1 to 256 bytes of UTF-8 without braces", recipes.ErrInvalid, prefix)
	}
	return nil
}

// slotKey returns what Redis Cluster hashes of a key of ours: two keys with the
// same lie in one slot.
func slotKey(key string) string {
	_, tagged, _ := strings.Cut(key, "{")
	tag, _, _ := strings.Cut(tagged, "}")
	return tag
}
