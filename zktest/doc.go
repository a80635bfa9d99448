// Package zktest is a ZooKeeper server in this process: the real wire protocol,
// a tree in memory, one node. It is for tests, demos and development; nothing is
// kept, and it is not for production.
//
//	srv := zktest.Start(t)                       // TCP, on a free port of 127.0.0.1
//	srv := zktest.Start(t, zktest.InMemory())    // only through srv.Dial
//
// Any client can connect to Addr. In a testing/synctest bubble a client that
// takes a dialer runs unmodified over in-memory connections, with virtual time:
// hours of sessions in milliseconds, and no sleeps.
//
// Faults happen on demand: a reply or a request is lost, a connection is cut or
// swallows bytes, a session expires, a follower lags behind or has lost its
// leader. See the methods of Server.
package zktest
