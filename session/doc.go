// Package session keeps one ZooKeeper session honest: it says early and reliably
// when the session can no longer be believed, brings up a fresh one, and resolves
// what became of requests whose answers were lost.
//
// # Lives
//
// A [Session] is what a program opens and shares. Behind it stands one server
// session at a time, a [Life]: it has an id, ends once, and is never taken up
// again. After a loss the Session opens a new Life by itself; locks created
// earlier go on under it, grants of the old one are gone and have said so.
//
// # The trust window
//
// A client that is cut off from the ensemble is never told that its session
// expired. So trust ends by our own clock, ahead of the server's: at
//
//	sent + timeout − margin
//
// where sent is when we sent the last request that the ensemble committed.
// Answers to pings and reads do not count: a server that is itself cut off from
// its leader goes on giving them while the leader's count runs on. The margin
// covers what the leader may not have heard of yet when it committed that
// request; see window.go for the reasoning. While something is held, a heartbeat
// (a transaction that consists of version checks alone) is committed every
// sixth of the timeout. When nothing is held there is no heartbeat.
//
// At the end of the window everything held is revoked, then the state [Lost] is
// announced, then the old connection is closed for good and a new one dialed.
//
// # What it does not do
//
// No timer can stop a process that the kernel has stopped: such a process can act
// late. And clocks must run at the same rate within the margin, which rests on
// tickTime ≤ timeout/2, true wherever the server's minSessionTimeout was not set
// below its default of two ticks.
package session
