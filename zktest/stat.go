package zktest

import (
	"time"
)

// Stat is what the server tells about a node, as in the protocol. Times are in
// milliseconds since 1970. Cversion counts the children's creations and
// deletions. EphemeralOwner is the session of an ephemeral node, and 0 for
// any other, containers included.
type Stat struct {
	Czxid, Mzxid                int64
	Ctime, Mtime                int64
	Version, Cversion, Aversion int32
	EphemeralOwner              int64
	DataLength, NumChildren     int32
	Pzxid                       int64
}

const (
	ownerContainer = -1 << 63
	ownerTTL       = -1 << 56 // 0xff…: the low 40 bits are milliseconds
	maxTTL         = 1<<40 - 1
)

// isSession reports whether an owner is a session, not a mark for a container
// or a node with a time to live.
func isSession(owner int64) bool {
	return owner != 0 && owner != ownerContainer && !isTTL(owner)
}

func isTTL(owner int64) bool { return owner&ownerTTL == ownerTTL }

func ttlOf(owner int64) time.Duration {
	return time.Duration(owner&maxTTL) * time.Millisecond
}
