package jute

// ACL grants a set of permissions on one node to one identity.
type ACL struct {
	Perms      int32
	Scheme, ID string
}

// Stat is what a server tells about a node. Times are in milliseconds since
// 1970.
type Stat struct {
	Czxid, Mzxid                int64
	Ctime, Mtime                int64
	Version, Cversion, Aversion int32
	EphemeralOwner              int64
	DataLength, NumChildren     int32
	Pzxid                       int64
}

// Entry is an ACL on one line.
func Entry(perms int32, scheme, id string) ACL { return ACL{perms, scheme, id} }
