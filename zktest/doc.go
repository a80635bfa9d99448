// Package zktest is a ZooKeeper server in this process: the real wire protocol,
// a tree in memory, one node. It is for tests, demos and development; nothing is
// kept, and it is not for production.
//
//	srv := zktest.Start(t)                    // TCP, on a free port of 127.0.0.1
//	srv := zktest.Start(t, zktest.InMemory()) // only through srv.Dial
//
// Any client can connect to Addr. In a testing/synctest bubble, a client that
// takes a dialer runs unmodified over in-memory connections, with virtual time:
// hours of sessions in milliseconds, and no sleeps.
//
// # Faults
//
// Faults happen on demand. To one session, or to all: Expire, Cut, BlackHole,
// StaleReads, CutOffFollower. To the n-th request of a kind: LoseReply,
// LoseRequest, FailRequest, HoldRequest. To everybody: Refuse, Delay, Wipe,
// AnswerResumeWith. Heal ends those that last. Create, Set, Delete and their
// like change the tree behind the clients' backs, and WaitFor waits for what the
// server comes to see. A fault aimed at a session or a connection that isn't
// there does nothing, unless it returns an error.
//
// # How true it is
//
// The model is ZooKeeper 3.8.0, alone, with its default settings and
// extendedTypesEnabled. Compared with a real one, request by request, were: the
// codes and zxids of answers, stats, the versions and the zxid of a parent,
// sequence numbers, the results of multis, the order of events, ACLs, paths that
// make no sense, listing order, the beginning, resumption and end of sessions,
// failed authentication, unknown and malformed requests.
//
// What differs:
//
//   - A session expires exactly when its timeout has passed since the server last
//     heard of it; a real server rounds up to its next tick.
//   - Its own deletions are always told to a session that expires, just before
//     its connection is closed; a real server may be too late for that.
//   - Of several ephemeral nodes, that of the smallest path goes first when their
//     session ends; a real server goes by its hash table.
//   - A create with a time to live but no such mode is answered BadArguments; it
//     brings a real 3.8.0 down.
//   - At the end of its range the sequence number sticks, also for requests that
//     come close together; a real server may then give out a negative one.
//   - There is no SASL, no quota, no read-only mode, and reconfiguration is
//     disabled. Persistent watches, removing watches, and the queries that only
//     command-line tools send are not there yet: they are answered as by a server
//     too old for them, with Unimplemented and the end of the connection.
//
// Events carry the zxid -1, as all do before 3.9.
package zktest
