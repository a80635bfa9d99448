package conformance

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A Suite says what is tested.
type Suite struct {
	Backend Backend
	// Size is how much can be held at a time, and Ways are the ways in, each
	// with the part of Size that it takes.
	Size int
	Ways []Way
	// Lacks is what the lock or its service doesn't have, and why.
	Lacks map[Capability]string
}

// Whole is the size of a lock that any number can share.
const Whole = math.MaxInt32

// A Way is a way to hold a lock.
type Way struct {
	Name  string
	Takes int
	// Lacks is what this way doesn't have while others do.
	Lacks map[Capability]string
}

// A Capability is something that not every lock or service has.
type Capability string

// The capabilities. Where a lock lacks one, the checks that need it are skipped.
const (
	Order      Capability = "order of arrival"         // waiters are served in it, and nobody passes a waiter
	Try        Capability = "try"                      // [Entry.Try]
	Tokens     Capability = "tokens"                   // grants have them
	Delay      Capability = "lock delay"               // recipes.LockDelay
	Contenders Capability = "contenders"               // [Lock.Contenders]
	Reentry    Capability = "re-entrancy"              // recipes.Reentrant
	All        Capability = "several locks at a time"  // [Lock.Key]
	Losing     Capability = "ending a session"         // [Client.Lose]
	CuttingOff Capability = "cutting a client off"     // [Client.CutOff]
	Removing   Capability = "removal by an operator"   // [World.Remove]
	Steps      Capability = "stepping through a call"  // [Client.OnStep]
	Requeueing Capability = "queueing again on a loss" // and recipes.FailOnLoss
)

// A Backend is a service with a lock on it.
type Backend interface {
	// Run runs f as a subtest in a world of its own: a service with nothing on
	// it and no clients. When f has returned, or failed, it closes the clients
	// and fails the test if that leaves anything running.
	Run(t *testing.T, name string, f func(t *testing.T, w World))
}

// A World is a service and what can happen to it. Locks have names, which the
// backend makes paths or keys of.
type World interface {
	// Client returns a new client of the service, with a session of its own.
	Client() Client

	// Queued waits until n contenders stand in line on the server, holders
	// included, and Settle has nothing more to wait for. It reports whether that
	// came to be, and otherwise what is there.
	Queued(lock string, n int) (is string, ok bool)
	// Empty waits until nothing is left on the server for the lock but what goes
	// by itself when it isn't used. It reports whether that came to be, and
	// otherwise what is left.
	Empty(lock string) (left string, ok bool)
	// Settle waits until what is under way has come to its end. In real time,
	// where that can't be known, it waits for what would be most likely to show
	// a fault, such as an answer to each client.
	Settle()
	// Pass lets d pass on virtual time. In real time, it returns soon.
	Pass(d time.Duration)
	// Patience is how long to wait for what must come: much longer than the
	// service takes to notice the loss of a client.
	Patience() time.Duration
	// Short is a time to use where a test has to wait for its end: much longer
	// than a call takes.
	Short() time.Duration

	// Remove takes the contender with that index in line off the server, as an
	// operator would, and RemoveAll everything that is there for the lock.
	Remove(lock string, index int)
	RemoveAll(lock string)
	// Heal ends what CutOff began.
	Heal()
}

// A Client is one program's connection to the service.
type Client interface {
	// Lock makes a lock object.
	Lock(name string, opts ...recipes.Option) (Lock, error)
	// CutOff takes the network away from it, without notice to either side.
	CutOff()
	// Lose has the service end the client's session, or remove all that it holds
	// there, without waiting for its time. It returns the reason that holders
	// are to hear.
	Lose() (reason error)
	// OnStep has f called with every request of this client when it reaches the
	// service, before anything is done with it; nil ends that.
	OnStep(f func())
	// Close closes it in an orderly way.
	Close() error
}

// A Lock is one lock object of one client.
type Lock struct {
	// Enter has one entry for each of the suite's ways, in the same order.
	Enter      []Entry
	Contenders func(context.Context) ([]recipes.Contender, error)
	Key        func() string

	name string
}

// An Entry is how to come in by one of the ways.
type Entry struct{ Acquire, Try Acquire }

// Acquire is Lock, TryLock or their kin.
type Acquire = func(context.Context) (*recipes.Grant, error)
