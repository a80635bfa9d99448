package fallback

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// What can't be right is refused before anything is sent.
func TestBadArguments(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		c := r.client()
		rdb := r.redis()
		ring := redis.NewRing(&redis.RingOptions{})
		defer ring.Close()
		endless := redis.NewClient(&redis.Options{ReadTimeout: -1})
		defer endless.Close()
		before := r.CommandCount()
		for name, rdb := range map[string]redis.UniversalClient{
			"nil": nil, "a nil *Client": (*redis.Client)(nil), "a nil *ClusterClient": (*redis.ClusterClient)(nil),
			"a Ring": ring, "no ReadTimeout": endless,
		} {
			if c, err := New(rdb); c != nil || !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("New of %s: %v, %v", name, c, err)
			}
		}
		for _, opts := range [][]recipes.Option{
			{nil}, {Prefix("")}, {Prefix("a{b")}, {Prefix("a}b")}, {Prefix("\xff")}, {Realm("")}, {recipes.Extension(3)}, {recipes.Owner("")},
		} {
			if c, err := New(rdb, opts...); c != nil || !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("New with %v: %v, %v", opts, c, err)
			}
		}
		for _, key := range []string{"", strings.Repeat("x", maxName+1)} {
			if m, err := NewMutex(c, key); m != nil || !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("key %.10q: %v, %v", key, m, err)
			}
		}
		if m, err := NewMutex(nil, "x"); m != nil || !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("no client: %v, %v", m, err)
		}
		// An option of something else is called by its name.
		for says, opt := range map[string]recipes.Option{
			"Prefix is for New only": Prefix("x"), "NodeTimeout is for a Redlock": NodeTimeout(time.Second), "CountRestarted is for a Redlock": CountRestarted(),
		} {
			if _, err := NewMutex(c, "x", opt); !errors.Is(err, recipes.ErrInvalid) || !strings.Contains(err.Error(), says) {
				t.Errorf("want %q: %v", says, err)
			}
		}
		for _, opts := range [][]recipes.Option{
			{nil}, {recipes.Extension(3)}, {recipes.MaxHold(0)},
			{TTL(0)}, {TTL(-time.Second)}, {TTL(MinTTL - 1)}, {TTL(MaxTTL + 1)}, {TTL(time.Duration(time.Now().UnixNano()))},
			{WaiterTimeout(MinWaiterTimeout - 1)}, {WaiterTimeout(MaxWaiterTimeout + 1)},
			{Passes(-1)}, {Passes(MaxPasses + 1)},
			{WaitReplicas(0, time.Second)}, {WaitReplicas(101, time.Second)}, {WaitReplicas(1, 0)}, {WaitReplicas(1, time.Second+1)},
			{Prefix("x")}, {AllowEviction()}, {Realm("x")}, // of the client
		} {
			if m, err := NewMutex(c, "x", opts...); m != nil || !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("%v: %v, %v", opts, m, err)
			}
		}
		if n := r.CommandCount() - before; n != 0 {
			t.Errorf("%d commands", n)
		}
	})
}

// The wait for replicas can't be longer than the Redis client waits for anything.
func TestWaitForReplicasBeyondTheReadTimeout(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		rdb := r.redis()
		rdb.Options().ReadTimeout = 100 * time.Millisecond
		c, err := New(rdb)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := NewMutex(c, "x", WaitReplicas(1, 100*time.Millisecond)); !errors.Is(err, recipes.ErrInvalid) {
			t.Error(err)
		}
		if _, err := NewMutex(c, "x", WaitReplicas(1, 50*time.Millisecond)); err != nil {
			t.Error(err)
		}
	})
}

// The options of New are those of every lock, unless it has its own.
func TestOptionsOfTheClient(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		c := r.client(Prefix("app"), TTL(time.Minute), recipes.Owner("anna"), Passes(2))
		l := r.of(c).l
		if l.cfg.ttl != time.Minute || l.set.Owner != "anna" || l.cfg.passes != 2 || !strings.HasPrefix(l.keys[0], "app:{x}:") {
			t.Errorf("%+v, %+v", l.cfg, l.keys)
		}
		l = r.of(c, TTL(time.Second), recipes.Owner("bob")).l
		if l.cfg.ttl != time.Second || l.set.Owner != "bob" || l.cfg.passes != 2 {
			t.Errorf("%+v, %+v", l.cfg, l.set)
		}
		g := r.lock(r.of(c))
		if r.Exists(DefaultPrefix+":{x}:lock") || !r.Exists("app:{x}:lock") {
			t.Errorf("keys %q", r.Keys())
		}
		r.release(g)
	})
}

// A server that removes keys when its memory is full gives held locks away.
func TestServerThatEvicts(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		info := ""
		r.on(func(p *server.Peer, cmd string, args []string) bool {
			if cmd == "INFO" {
				p.WriteBulk(info)
			}
			return cmd == "INFO"
		})
		for text, fine := range map[string]bool{
			"run_id:abc\r\nmaxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n":  false,
			"run_id:abc\r\nmaxmemory:1000\r\nmaxmemory_policy:volatile-ttl\r\n": false,
			"run_id:abc\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n":     true,
			"run_id:abc\r\nmaxmemory:1000\r\nmaxmemory_policy:noeviction\r\n":   true,
		} {
			info = text
			c, err := New(r.redis())
			if (err == nil) != fine || err != nil && !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("%q: %v", text, err)
			}
			if err != nil {
				c, err = New(r.redis(), AllowEviction())
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.realm != "abc/0" {
				t.Errorf("realm %q", c.realm)
			}
			c.Close()
		}
	})
}

// Where nobody answers, New says so rather than leave it to the first Lock. Where INFO
// is forbidden, it warns.
func TestServerThatSaysNothing(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.refuse("INFO", "LOADING Redis is loading the dataset in memory")
		if c, err := New(r.redis()); err == nil {
			t.Error("a client of a server that doesn't serve")
			c.Close()
		}
		r.refuse("INFO", "NOPERM this user has no permissions to run the 'info' command")
		r.client()
		if n := r.logged("evicts keys"); n == 0 {
			t.Error("no warning")
		}
		start := time.Now()
		r.on(func(p *server.Peer, cmd string, args []string) bool {
			if cmd == "INFO" {
				time.Sleep(time.Minute)
			}
			return false
		})
		if _, err := New(r.redis()); err == nil {
			t.Error("a client of a server that hangs")
		}
		if d := time.Since(start); d > patience {
			t.Errorf("after %v", d)
		}
		time.Sleep(2 * time.Minute)
	})
}

// A key that holds something else is left as it is, and the error says so. R10
func TestKeyHoldsSomethingElse(t *testing.T) {
	for name, set := range map[string]func(r *rig){
		"AnotherType":           func(r *rig) { r.Lpush("lockkeeper:{x}:lock", "v") },
		"AnotherText":           func(r *rig) { r.Set("lockkeeper:{x}:lock", "v") },
		"AnotherTypeOfQueue":    func(r *rig) { r.Lpush("lockkeeper:{x}:mutex-queue", "v") },
		"AnotherTypeOfAlive":    func(r *rig) { r.Lpush("lockkeeper:{x}:mutex-alive", "v") },
		"AnotherTypeOfToken":    func(r *rig) { r.Lpush("lockkeeper:{x}:lock-token", "v") },
		"AnotherTextOfTheToken": func(r *rig) { r.Set("lockkeeper:{x}:lock-token", "v") },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, r *rig) {
				m := r.mutex()
				set(r)
				before := r.Dump()
				for _, f := range []func(context.Context) (*recipes.Grant, error){m.Lock, m.TryLock} {
					g, err := f(t.Context())
					if g != nil {
						t.Fatal("granted")
					}
					wants(t, err, recipes.ErrConflict)
					if name == "AnotherText" && !strings.Contains(err.Error(), `"lockkeeper:{x}:lock" holds something else`) {
						t.Errorf("%v: does not name the key", err)
					}
				}
				if after := r.Dump(); after != before {
					t.Errorf("before:\n%safter:\n%s", before, after)
				}
				if strings.HasSuffix(name, "e") || name == "AnotherText" {
					if _, err := m.Contenders(t.Context()); name == "AnotherText" {
						wants(t, err, recipes.ErrConflict)
					}
				}
			})
		})
	}
}
