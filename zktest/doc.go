// Package zktest is a ZooKeeper server in this process: the real wire protocol,
// a tree in memory, one node. It is for tests, demos and development; nothing is
// kept, and it is not for production.
//
//	srv := zktest.Start(t)                    // TCP, on a free port of 127.0.0.1
//	srv := zktest.Start(t, zktest.InMemory()) // only through srv.Dial
//
// Start closes the server with the test, and fails the test if a session, a watch
// or a goroutine of its clients is left. New is for programs.
//
// Any client can connect to Addr: go-zookeeper, the Apache Java client and its
// zkCli, Curator and kazoo have been tried. In a testing/synctest bubble, a client
// that takes a dialer runs unmodified over in-memory connections, with virtual
// time: hours of sessions in milliseconds, and no sleeps.
//
// # Faults
//
// Faults happen on demand. To one session, or to all: Expire, Cut, BlackHole,
// StaleReads, CutOffFollower. To the n-th request of a kind: LoseReply,
// LoseRequest, FailRequest, HoldRequest. To everybody: Refuse, Delay, Wipe,
// AnswerResumeWith. Heal ends those that last. Create, Set, Delete and their
// like change the tree behind the clients' backs, SetSequence sets what the next
// sequential node is called, and WaitFor waits for what the server comes to see.
// A fault aimed at a session or a connection that isn't there does nothing, unless
// it returns an error.
//
// What the server has seen: Requests counts, by operation and session; Sessions,
// Tree, Stat and their like look at what there is; OnRequest is told of each
// request. The four-letter words ruok, isro, srvr, stat, mntr, cons, dump, wchs,
// wchc, wchp, conf, envi, crst and srst are answered.
//
// # How true it is
//
// The model is ZooKeeper 3.8.0, alone, with its default settings and
// extendedTypesEnabled, and with the fix for CVE-2024-23944: who may not read a
// node is not told by a watch what becomes of it. The same scripts, written by hand
// and generated, are played to this server and to a real one, and every answer,
// zxid, stat, code and event, and their order, has to agree: see integration/truth
// in the repository. That covers every request that the clients named above send,
// requests that no client sends, paths and frames that make no sense, ACLs,
// listing order, the beginning, resumption, expiry and end of sessions, containers,
// nodes with a time to live, and the answers to four-letter words.
//
// Three things to know of 3.8.0, and thus of this server: a one-shot watch that is
// set where the connection has a persistent one takes its place; checkWatches
// finds anybody's watch; and watch events carry the zxid -1. From 3.9 on they
// carry that of the change; nothing in the protocol asks for it, so EventZxids
// does.
//
// What differs:
//
//   - A session expires exactly when its timeout has passed since the server last
//     heard of it; a real server rounds up to its next tick.
//   - Its own deletions are always told to a session that expires, just before
//     its connection is closed; a real server may be too late for that.
//   - A create with a time to live but no such mode is answered BadArguments; it
//     brings a real 3.8.0 down.
//   - At the end of its range the sequence number sticks, also for requests that
//     come close together; a real server may then give out a negative one.
//   - A client's request that asks for a session on a connection that has one, and
//     one to delete a container as the server does, are refused. No client sends
//     either.
//   - There is no SASL, no quota, no read-only mode, and reconfiguration is
//     disabled. The figures of mntr are few, and latencies are 0.
package zktest
