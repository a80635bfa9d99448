// Package fair is an exclusive lock on ZooKeeper with a queue that can be seen, and
// that can be shared between tenants so that none of them starves another.
//
// # Tickets
//
// [Lock.Join] takes a place in the queue and returns at once with a [Ticket], which
// tells how many are ahead, is waited for when it suits the caller, for as long as
// it suits, and can be left. Everything else is as in package mutex: grants in order
// of arrival, watches on the predecessor only, tokens, revocation by our own clock.
// A Lock and a mutex.Mutex on the same path exclude each other, and so do the other
// libraries' locks that a Mutex excludes.
//
// # Flows
//
// In a first-in first-out queue a tenant with a thousand requests makes everybody
// else wait behind all of them. With the option [Flow] the contenders of a tenant
// are a flow. Each flow has a queue of its own, and only the first of it, as many as
// the flow's weight, may wait in the lock's queue at a time; the holder does not
// count, so that the next of a flow is in line already when it releases. So the
// lock goes round the flows that want it, in proportion to their weights, as in
// weighted round-robin and weighted fair queueing of packets, without a scheduler.
//
//   - Within a flow, grants are in order of arrival. Tokens rise over all flows.
//   - The first of its flow, once it stands in the lock's queue, sees at most as many
//     grants before its own as the weights of the other flows add up to, plus the
//     one that is held when it comes. It stands there two round trips after it
//     joined. One that waits before the gate of its flow stands there a round trip
//     after a place has become free, and the next one three round trips after that:
//     so a flow keeps its places filled where the lock is held for about two round
//     trips or more, and hands it over as fast as a plain queue then.
//   - A flow that nobody is in has no credit and no debt: it neither gains by having
//     been away nor pays for what it had.
//   - Flows come and go by themselves. Their nodes are containers below PATH.flows,
//     beside the lock's own node, which ZooKeeper removes when they are not used.
//   - Where clients give one flow different weights, the newest request's counts for
//     it from then on, also for those who wait already. Proportions are what matters:
//     prefer small numbers, since a request reads as many names as the weight of its
//     flow.
//   - A contender that dies, in whichever queue, is out of the way when its session
//     has ended.
//   - Contenders without a flow, those of a Mutex and of other libraries stand in the
//     lock's queue at once, as many as there are. So give every client a flow where
//     shares matter.
//
// What it costs: an uncontended lock and release is 9 requests, and 3 round trips to
// the grant; one without a flow is 3 requests and one round trip. A hand-over between
// flows under load, with all that its contenders ask for on their way, is 12 to 16
// requests and about three watch events; requests and bytes don't depend on how many wait,
// nor on the number of flows.
//
// # Shares of time
//
// With [ByHoldTime] it is not the number of grants that is shared in proportion to
// the weights, but the time for which the lock is held, after the example of
// scheduler-cooperative locks (Patel et al., EuroSys 2020). At each release the time
// of holding, divided by the flow's weight, is added to what the flow has used; a
// grant counts as a millisecond at least. The time counts from the turn on, also where
// nobody waits for a ticket. The lock's node says what every flow in line had used at
// the end of the last round, a round being one pass through the lock's queue. A flow
// that is ahead of that by two turns, a turn being as many of its holdings as its
// weight, sits out: it lets all pass that are in line, and looks again.
//
//   - Guarantee: of flows that keep their places in line filled, none that has used
//     more than another, by weight, is ahead of it by more than four of its own turns.
//     So over many grants the times of holding are as the weights.
//   - Worst case: a flow that held for a time t sits out until each other flow that
//     stands in line without a pause has used t by its weight too. As a grant counts
//     as a millisecond at least, that ends. It ends at once when nobody is in line, and
//     is then two round trips away from the lock. A flow that is alone never sits out.
//   - Holding while nobody else was in line is no debt: the round is then one's own.
//   - A flow that comes back begins where the others are, unless it is ahead of them;
//     what it had used is forgotten when its nodes are removed, some time after it was
//     last there.
//   - Only flows with a contender in line count as wanting the lock. One with a single
//     request at a time is away from its release to its next request.
//   - A holding that ends by the loss of its session, or with its Close, is not counted;
//     nor is one that outlasts the flow's nodes, which the server removes after some
//     minutes in which nobody else of the flow has waited. Clients of one flow should agree on the option: those without it neither sit out
//     nor report.
//   - It costs three more requests a grant, and two more round trips to one that is not
//     contended. Flows that sit out watch the last in line, each of them: a release
//     wakes one waiter, and at most once a round each flow that sits out.
package fair
