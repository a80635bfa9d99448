package fallback

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// A Client is what the locks of one program share: one subscription by which waiters
// are told that their turn has come, one loop that renews what is held, and whatever
// is still to be cleaned up. Use one for each service; it is safe for concurrent use.
type Client struct {
	rdb     redis.UniversalClient
	id      string // in the ids of its contenders and the name of its inbox
	realm   string
	obeys   bool             // rdb heeds the deadlines of contexts
	timeout time.Duration    // of rdb's reads; 0: unknown
	opts    []recipes.Option // defaults of its locks
	set     recipes.Settings
	cfg     config

	seq     atomic.Uint64
	inbox   *inbox
	renewer *renewer
	janitor *janitor
	workers *workers
	sender  *sender // nil: for several servers

	closing context.Context // ends, with ErrSessionClosed, when Close begins
	close   context.CancelCauseFunc

	mu    sync.Mutex
	gates map[string]*gate
	calls sync.WaitGroup // of users, that may still come to hold something
}

// New returns a client for the service behind rdb: one server, a Sentinel group or a
// Cluster. The options are the defaults of its locks; [Prefix] and [AllowEviction] are
// the client's own. rdb stays the caller's: it is not closed by [Client.Close], and may
// be used for other things.
//
// New asks each master what it is (INFO, within 5s), and fails if none answers, or if
// one may evict keys when its memory is full, since it would give away locks that are
// held. Where INFO is refused, that is logged and taken on trust. A *redis.Ring is
// refused: it moves keys to other servers by itself. So is a client without
// ReadTimeout, unless it has ContextTimeoutEnabled: its calls could hang for ever.
//
// MaxRetries of rdb does not matter: commands that must not be sent twice are marked
// so. ReadTimeout should be well below the TTL.
func New(rdb redis.UniversalClient, opts ...recipes.Option) (*Client, error) {
	cfg := defaults()
	set, err := settle(opts, &cfg, clientOnly, anyLock, mutexOnly)
	if err != nil {
		return nil, err
	}
	if rdb == nil || reflect.ValueOf(rdb).Kind() == reflect.Pointer && reflect.ValueOf(rdb).IsNil() {
		return nil, fmt.Errorf("%w: New(nil): want a Redis client", recipes.ErrInvalid)
	}
	obeys, timeout, err := checkClient(rdb)
	if err != nil {
		return nil, err
	}
	c := newClient(rdb, cfg, set)
	c.obeys, c.timeout = obeys, timeout
	c.opts = forLocks(opts)
	if c.realm, err = checkServers(rdb, cfg, set.Logger); err != nil {
		return nil, err
	}
	c.realm = cmp.Or(cfg.realm, c.realm, c.id)
	return c, nil
}

// newClient makes a client of which nothing runs yet.
func newClient(rdb redis.UniversalClient, cfg config, set recipes.Settings) *Client {
	c := &Client{rdb: rdb, id: randomID(), cfg: cfg, set: set, gates: make(map[string]*gate)}
	c.closing, c.close = context.WithCancelCause(context.Background())
	c.workers = newWorkers()
	c.sender = newSender(c)
	c.inbox = newInbox(c)
	c.renewer = newRenewer(c)
	c.janitor = newJanitor(c)
	return c
}

func randomID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// newID names one contender on the server, for ever.
func (c *Client) newID() string {
	return c.id + "-" + strconv.FormatUint(c.seq.Add(1), 36)
}

// inboxes begins the name of every client's inbox.
func (c *Client) inboxes() string { return c.cfg.prefix + ":inbox:" }

// spawn runs f on a goroutine that Close waits for. It returns false if the client is
// closed, and then does not run f.
func (c *Client) spawn(f func()) bool { return c.workers.run(f) }

// enter counts a call that may come to hold something. It fails once Close has begun.
func (c *Client) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing.Err() != nil {
		return context.Cause(c.closing)
	}
	c.calls.Add(1)
	return nil
}

// Close revokes what the client holds, with [recipes.ErrSessionClosed], gives it back,
// ends the waits, and returns when nothing of the client's is left: no key, no
// goroutine, no connection. Where the server can't be reached, it returns an error
// after a little more than twice the longest TTL of what was held, when the keys have
// gone by themselves. It is
// idempotent.
func (c *Client) Close() error {
	c.mu.Lock()
	c.close(recipes.ErrSessionClosed)
	c.mu.Unlock()
	c.renewer.close()
	c.calls.Wait()
	c.renewer.drain()
	err := c.janitor.drain()
	c.inbox.close()
	c.workers.close()
	return err
}
