// Package inspect shows who holds a lock and who waits for it, for locks of every
// kind: it finds out itself what kind of lock a path is.
//
//	o, err := inspect.New(sess, "/locks/orders")
//	q, err := o.Look(ctx)                              // now
//	for q, err := range o.Watch(ctx, time.Second) { … } // and each change
//
// A [Queue] is a plain value, made for people and programs: it has a stable form in
// JSON. It is true of one moment only, as the server sees it to which we are
// connected: good for looking, not for deciding whether to write.
//
// # What can be seen
//
// Mutexes (those of Curator, kazoo and go-zookeeper, too, which share a path with
// ours), read/write locks (Curator's, too), semaphores, elections, and fair locks with
// the flows that wait before their gates. A fair lock without flows is a mutex.
// Barriers and groups are no locks: they have no holder.
//
// # Time
//
// All stamps are those of the server's clock. The server tells the time to nobody who
// only reads, so how long a contender has been in line, [Contender.Age], is counted up
// to a guess: our own clock, or where that is behind, the latest stamp that was seen.
// So it is wrong by as much as our clock is ahead of the server's, or at most by as
// much as it is behind; never negative; and what [Contender.Since] says, and the
// order, depend on no clock of ours.
//
// # What it costs
//
// An observer only reads. It holds no place and writes nothing, so contenders don't
// notice it. A look takes a read for each contender, a listing or two of the names,
// and two listings for each flow. While it watches, it has two watches on the path's
// node, one for the nodes of the flows together and one or two for each flow; all
// observers of a session share them.
package inspect
