// Package recipes is the contract that every lock of lockkeeper keeps: what a
// [Grant] is, how it ends, which errors and options there are.
//
// The locks themselves are in the packages below (mutex and others, on
// ZooKeeper) and in package fallback (on Redis). This package imports neither
// client, so that a program links only the one it uses.
//
// # Acquiring returns a value
//
// A lock object holds nothing: it may be shared by any number of goroutines,
// and each call is a contender of its own. What was acquired is the [Grant]
// that the call returns; it ends once, by [Grant.Release] or by revocation.
//
//	g, err := m.Lock(ctx)
//	if err != nil {
//		return err
//	}
//	defer g.Release(ctx)
//	return store.Put(g.Context(ctx), row, g.Token())
//
// [Do] is the form that can't be misused.
//
// # The promise
//
// While a grant's Done is open and this process is being scheduled, no other
// client of this library holds the lock, as long as clocks run at the same rate
// within the margin. A stopped process can act late: the token is what protects
// the resource. See package fence for the few lines that a resource needs, and
// package guard for writes into ZooKeeper that are refused once the lock is gone.
package recipes
