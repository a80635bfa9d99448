// Package sim hunts for double grants. It runs many clients, each with the real
// session code, every recipe but the simple barrier, and the unmodified client
// library, against a server in this process, in a bubble of virtual time, while an
// adversary does what can go wrong. An oracle is told of every grant and knows at each
// instant who may believe that it holds what.
//
//	go test ./internal/sim                                          # some seeds, in seconds
//	go test ./internal/sim -timeout 1h -sim.length=10m -sim.seeds=1000000 \
//	    -sim.budget=30m -sim.progress=30s                           # a soak
//	go test ./internal/sim -sim.seed=119 -sim.seeds=20 -sim.repeat  # one seed again
//	go test -tags lockkeeper_faults ./internal/sim -run TestInjectedFaults -v
//
// # What the adversary does
//
// To one client: it resets connections; holds what is sent, one way or both, for up
// to three session timeouts; loses it; slows it down; turns new connections away;
// freezes the program; lets the client's connection be to a follower that lags, or
// that has lost its leader and doesn't know; answers the attempt to take the session
// up again with another session, or with none; ends the session; ends the process,
// with or without a goodbye, and starts another; has all who wait in it give up at the
// same moment, and ask and give up all the time. To all: it loses the n-th request or
// reply of a kind, or answers it with an error that says little; takes the server
// down for a while; has it lose its data; removes contenders, those who hold too, and
// whole directories. It lies in wait for a certain request of a session, removes
// contenders just before that is carried out, and cuts the connection soon after: what
// was known before and what the answer says are then as different as they can be.
//
// Each client's clock runs at a rate of its own, up to 4 parts in 100 from the
// server's: the trust window allows for 5.
//
// A process has one or two handles for each lock, all on one session, and one or two
// goroutines that use them, or a crowd; some locks nest.
//
// What a seed fixes is what each client and the adversary want and when, and how long
// each frame takes on its way; so it fixes the order of what the clients do to each
// other. What it can't fix is the order in which Go runs goroutines that are ready at
// the same instant, and a few random numbers inside the library. So a failing seed
// fails again often, not always: -sim.repeat runs it several times.
//
// A frozen client is one whose network stands still in both directions while its
// program does nothing: what it would do next, a write above all, it does when it
// runs again, and with what it knew before. The library's own timers go on, which
// those of a stopped process would not: that a grant's Done is then closed late, and
// that Err, Remaining and Context look at the clock themselves, is tested in package
// recipes. So what is covered here is what others see of a process that was stopped,
// and what becomes of its late acts.
//
// A clock that is slow by some parts in a hundred is made by telling the client a
// session timeout that is longer by so much than the one that the server counts:
// every interval of the session's is a part of the timeout, so it is the same thing.
//
// # What the oracle checks
//
//   - overlap: no two live grants exclude each other; permits of a semaphore are not
//     more than its size, and no slot is taken twice. Live is a grant whose Done is
//     open, whether or not its program asks.
//   - node: as long as a grant is live, its node is there and belongs to its session.
//     This is looked at with every request that the server gets, so a grant that
//     outlives its session is seen although nobody else wants the lock.
//   - revocation: what somebody has taken away, an operator or a server that ended a
//     session early, is noticed within the session timeout.
//   - tokens: they rise with each exclusive grant and each slot. As the token is the
//     place in the queue, this is also the order of arrival, among those that kept
//     their session.
//   - arrival: a ticket that was granted was not overtaken by one of its flow that was
//     asked for after it had been taken.
//   - shares: a contender in a fair lock's queue sees no more grants of other flows
//     than their weights, and one.
//   - delay: after a holder that had asked for a lock delay has died, by the loss of its
//     session or its node or by a revocation, nobody comes in before the delay is over,
//     whether or not it asks for delays itself. It counts from when the node went, by
//     the server's clock. The record of it goes with the directory, and the check with
//     it. (Timers run true here: a waiter whose clock is fast waits for so much less.)
//   - round: nobody goes into a double barrier unless enough were there since it came,
//     nor while others are inside than those of its round, and nobody's Leave returns
//     before all have left or died who were inside with it.
//   - members: once the faults stop, all who follow a group see who is there.
//   - guarded writes: those that were carried out come in the order of their tokens;
//     so a late write of a holder whose grant is over is refused.
//   - turn: once the faults stop, everybody who waits gets the lock, within minutes.
//   - left behind: then no contender's node is left although the sessions live, and
//     when they are closed, no session, node or watch; nor a goroutine (goroutines).
//   - callback: one for each revoked grant, none for the others. context, result,
//     error, release, close: what a call returns is what it may. Who asks for what it
//     holds is granted that again where the lock nests, and refused where not.
//
// # The oracle is tested
//
// Known faults of other libraries can be put into this one; see package fault. Each
// is caught, first by the check and in the seed given here, of three virtual minutes
// each at the busiest (the figures are of one run and vary a little):
//
//	fault put in                               check       seed
//	a wake-up is taken for the grant           overlap        1
//	revocation only when the server says so    node           1
//	loss counted from the disconnection        node           1
//	heartbeats counted from the reply          node           9
//	pings counted as proof                     node           1
//	granted without a node of one's own        node           2
//	an ownerless node is adopted               node           1
//	a lost lock is released late, by name      node           1
//	clean-up with the cancelled context        turn           2
//	a deletion is not repeated                 turn          11
//	a creation is repeated without looking     turn          12
//	what is gone is waited for                 turn           1
//	order by name                              tokens         1
//	the sequence number is the token           tokens         1
//	an event frees permits                     overlap        1
//	a flow takes more than its share           shares         2
//	a lock delay is only for who saw it begin  delay          3
//	a count that is older than the own node    overlap        3
//	a round goes in with the one before        round          1
//	who leaves waits for one member only       round          1
//	the list of a group is not watched         members        1
package sim
