// Package conformance is the one suite that every lock of lockkeeper passes,
// whatever service is behind it. It is for tests only.
//
// Each check is a subtest named for what happens, and stands for one promise of
// package recipes, which is printed when it fails. Whatever a check is about, a
// witness looks at every grant as soon as a program has it: that it fits beside
// those whose Done is open, and that tokens rise. And in the end of each, nothing
// may be left on the server.
//
// # A lock
//
// A lock has one or several ways in. Each takes a share of the lock's size, and
// holds fit together as long as their sum does. That describes them all:
//
//	mutex, election   size 1        Lock takes 1
//	read/write lock   size Whole    Lock takes Whole, RLock takes 1
//	semaphore         size 3        Acquire takes 1, AcquireN(2) takes 2
//
// and, for a lock that serves in order of arrival, also who is to be granted: a
// contender is as soon as it fits beside all that stand before it in line.
//
// # A backend
//
// A service brings a [Backend], which makes worlds with clients in them, and can
// do to them what the world does. A world on virtual time is a testing/synctest
// bubble; one in real time waits for events, and its Pass returns soon. What a
// service or a lock doesn't have is declared in [Suite.Lacks] with a reason, and
// shows as a subtest that was skipped for that reason.
package conformance
