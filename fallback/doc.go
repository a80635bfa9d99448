// Package fallback has locks on Redis with the face of those in package recipes: the
// same grants, errors, callbacks and contexts. They are fast, and weaker: a lock here can
// be lost while it is held, and given to another before its holder knows. That happens
// when a failover promotes a replica which had not yet received the lock (Redis
// replicates after it has answered), when the server removes the key because its memory
// is full, when it restarts without having written the key to disk, when somebody deletes
// it, and when the server's clock jumps forward, since Redis ends keys by its wall clock.
// The holder is told at its next renewal, a third of the TTL later at most; until then
// two hold the lock. Where that would do harm, and no token can be checked, use
// recipes/mutex and the others on ZooKeeper: they have none of this. Use this package
// where a lock saves work, or where the resource refuses stale tokens: [recipes.Grant]'s
// Token rises with every exclusive grant, so that a holder which has lost the lock can't
// undo what its successor wrote. See package recipes/fence.
//
// The caller chooses for each lock. Nothing switches from ZooKeeper to Redis by itself: a
// client that is cut off from ZooKeeper would take here what another still holds there.
//
//	c, err := fallback.New(redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"}))
//	defer c.Close()
//	m, err := fallback.NewMutex(c, "orders", fallback.TTL(5*time.Second))
//	err = recipes.Do(ctx, m.Lock, func(ctx context.Context, g *recipes.Grant) error {
//		return store.Put(ctx, row, g.Token())
//	})
//
// # Kinds of locks
//
// [Mutex], [RWLock], [Fair] (strictly in order of arrival) and [Semaphore] have the methods
// of their namesakes in package recipes, but for tickets, flows and Resize. A key is one
// kind of lock at a time; for another kind it is a conflict. [Redlock] is a mutex over
// several servers that know nothing of each other, and survives the loss of some.
//
// # What is promised
//
// As long as the server keeps its keys, and the clocks of client and server run at the
// same rate within one in a hundred: while a grant's Done is open and this process is
// being scheduled, no other client of this package holds the lock. Trust ends by our own
// clock, counted from before the request was sent that took or renewed the lock. A
// process that was stopped finds its grant ended when it looks, without asking anybody.
// A loss is told once. A renewal never makes a lock anew.
//
// A request whose answer was lost is followed up until it is certain what became of it,
// and one that was given up is barred: if it reaches the server late, within a minute, it
// is refused. Nobody's cancelled context is used to clean up. Go-redis sends a command
// again whose answer did not come, and does not look at the context meanwhile; neither
// happens to the commands of this package.
//
// # Tokens
//
// A token is the server's time in microseconds, or follows on the last one where that is
// not larger. It rises as long as the lock's counter, kept for a minute after its last
// use, or the server's clock goes forward; so it also rises after FLUSHALL. After a
// failover to a server whose clock is behind, which had not received the counter, it may
// not: keep clocks synchronised.
//
// # How it waits
//
// A waiter queues on the server. Whoever releases the lock gives it to the first in line
// that lives, in the same script, and publishes that to its inbox, one channel for each
// client: nobody else wakes up. A waiter also looks for itself each third of the
// [WaiterTimeout], when the holder's time is over, and whenever the subscription was made
// anew, since a message may be lost. Where publishing or subscribing is refused, waiters
// poll, with growing and random pauses of 250ms at most, and one warning is logged.
//
// # What it costs
//
// Lock and release without contention: two commands and two round trips. A hand-over: one
// command to queue and one by the releaser, and a third if the lock is then held for
// longer than about a second. Goroutines that share a client pass the lock on without any:
// see [Passes]. A waiter sends one command each third of the WaiterTimeout. What is held
// is renewed by one script for up to 100 locks each third of the TTL (in a Cluster, one
// for each slot, pipelined). Each client has one more connection while it waits. Scripts
// that many callers send at the same time to a single server go in common pipelines.
//
// Redis 5 or later, or Valkey; alone, with Sentinel, or as a Cluster, where PUBLISH reaches
// every node: only hand-overs publish.
package fallback
