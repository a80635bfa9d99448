package fallback

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// hashTag is the rule of Redis Cluster: what stands between the first { and the first }
// after it, if that is something, or else the whole key.
func hashTag(key string) string {
	if i := strings.IndexByte(key, '{'); i >= 0 {
		if j := strings.IndexByte(key[i+1:], '}'); j > 0 {
			return key[i+1 : i+1+j]
		}
	}
	return key
}

// Whatever a lock is called, its keys lie in one slot, and no other has them. R58
func TestKeysOfALockLieInOneSlot(t *testing.T) {
	names := rapid.OneOf(
		rapid.StringN(1, 20, -1),
		rapid.StringMatching(`[a{}%25BD7]{1,12}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 20), func(b []byte) string { return string(b) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		a, b := names.Draw(t, "a"), names.Draw(t, "b")
		keys, others := keysOf("p", a, mutexKind.suffixes), keysOf("p", b, mutexKind.suffixes)
		for i, k := range keys {
			if hashTag(k) != hashTag(keys[0]) || hashTag(k) == k || slotKey(k) != hashTag(k) {
				t.Errorf("%q and %q: tags %q and %q, taken for %q", keys[0], k, hashTag(keys[0]), hashTag(k), slotKey(k))
			}
			if (k == others[i]) != (a == b) {
				t.Errorf("%q for %q and %q", k, a, b)
			}
		}
	})
	for _, name := range []string{"a{b}c", "a}b", "foo{}bar", "{", "}", "{}", "%7B", "\x00\xff"} {
		if keys := keysOf("p", name, []string{"x", "y"}); hashTag(keys[0]) != hashTag(keys[1]) || hashTag(keys[0]) == keys[0] {
			t.Errorf("%q: %q", name, keys)
		}
	}
}
