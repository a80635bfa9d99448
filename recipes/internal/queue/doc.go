// Package queue is the core under all recipes on ZooKeeper: a queue of ephemeral
// sequential nodes in one lock directory, in which each contender watches only
// the one just before it that stands in its way.
//
// It is the shared lock of the ZooKeeper recipes (Hunt et al., 2010), with a
// hand-over whose cost does not depend on the number of waiters:
//
//   - A name begins with a stamp, the czxid of the lock directory, which is the
//     same for every contender. So a name never comes back after the directory
//     was removed and made again, and a contender can compute its predecessor's
//     name from its own number, without listing anything.
//   - A release deletes the own node and, in the same transaction, writes its
//     number into the directory's data. Whoever watched that node reads the
//     data: if it was the holder that left, everybody before it is gone, too.
//   - Only where a contender died, gave up or belongs to another library are the
//     names listed, and what was listed is remembered: those ahead can only
//     become fewer.
//
// Where contenders don't all exclude each other, as readers don't, the list that a
// contender takes on arrival is what it goes by; see mixed.go. Who holds alone can
// let others in under its own number, and go before them: share.go.
//
// From a name to a grant the files read: name.go, record.go (the directory's
// data), directory.go, decide.go (who may go, as a pure function), queue.go,
// enqueue.go, place.go and wait.go (one contender's way), hold.go, delay.go. Locks
// with slots go on in slots.go (who has which), admit.go and head.go (the first in
// line), size.go, and room.go (what those see who will not wait); those who hold in
// public in announced.go, value.go and heir.go.
package queue
