package fallback

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// Whatever happens to the server's clock and keys, as long as not to both. R62
func TestTokensRise(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		now := time.Now()
		r.SetTime(now)
		m, other := r.mutex(), r.mutex()
		var last recipes.Token
		next := func(what string) {
			t.Helper()
			for _, m := range []*Mutex{m, other, m} {
				g := r.lock(m)
				if g.Token() <= last {
					t.Errorf("%s: token %v after %v", what, g.Token(), last)
				}
				last = g.Token()
				r.release(g)
			}
		}
		next("at first")
		next("in the same microsecond")
		r.SetTime(now.Add(-time.Hour))
		next("the clock goes back")
		r.SetTime(now)
		next("the clock goes on")
		now = now.Add(time.Millisecond)
		r.SetTime(now)
		r.FlushAll()
		next("everything was deleted")
		now = now.Add(2 * time.Minute)
		r.SetTime(now)
		if keys := r.Keys(); len(keys) > 0 {
			t.Errorf("not used for two minutes: %q", keys)
		}
		next("not used for two minutes")
	})
}

// A clock that went back for long: the counter outlives what it is ahead of the clock.
func TestTokenOfAClockThatWentBack(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		now := time.Now()
		r.SetTime(now)
		m := r.mutex()
		g := r.lock(m)
		last := g.Token()
		r.release(g)
		r.SetTime(now.Add(-24 * time.Hour))
		g = r.lock(m)
		r.release(g)
		r.SetTime(now.Add(-24*time.Hour + 10*time.Minute)) // disused, but the clock is not there yet
		g = r.lock(m)
		if g.Token() <= last {
			t.Errorf("token %v after %v", g.Token(), last)
		}
		r.release(g)
	})
}

// What becomes of a request, by the error: see those that pass. R60, R10
func TestFates(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: io.EOF}
	read := &net.OpError{Op: "read", Err: io.EOF}
	for _, test := range []struct {
		err  error
		want fate
	}{
		{nil, answered},
		{dial, postponed}, {redis.ErrPoolTimeout, postponed},
		{reply("LOADING Redis is loading"), postponed}, {reply("READONLY You can't write"), postponed},
		{reply("CLUSTERDOWN Hash slot not served"), postponed}, {reply("MASTERDOWN x"), postponed}, {reply("TRYAGAIN x"), postponed},
		{reply("MOVED 1 127.0.0.1:1"), postponed}, {reply("ERR max number of clients reached"), postponed},
		{reply("OOM command not allowed when used memory > 'maxmemory'."), postponed}, {reply("BUSY Redis is busy"), postponed},
		{reply("ASK 1 127.0.0.1:1"), postponed}, {reply("NOREPLICAS Not enough good replicas to write."), postponed},
		{reply("MISCONF Redis is configured to save RDB snapshots"), postponed}, {reply("NOSCRIPT No matching script."), postponed},
		{reply("ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write"), postponed},
		{reply("WRONGTYPE x"), refused}, {reply("NOPERM x"), refused}, {reply("ERR unknown command"), refused}, {redis.ErrClosed, refused},
		{io.EOF, unknown}, {read, unknown}, {context.DeadlineExceeded, unknown}, {errNoAnswer, unknown},
	} {
		if got := fateOf(test.err); got != test.want {
			t.Errorf("%v: %v, want %v", test.err, got, test.want)
		}
	}
	for text, want := range map[string]error{
		"WRONGTYPE x": recipes.ErrConflict, "NOPERM x": recipes.ErrPermission, "NOAUTH x": recipes.ErrPermission, "WRONGPASS x": recipes.ErrPermission,
		"ERR Error running script (call to f_1): @user_script:1: WRONGTYPE Operation": recipes.ErrConflict,
		"ERR user_script:30: WRONGTYPE k is no counter script: 1":                     recipes.ErrConflict,
	} {
		wants(t, translate(reply(text)), want)
		wants(t, translate(reply(text)), reply(text))
	}
}

// A reply is an error as go-redis returns it.
type reply string

func (e reply) Error() string { return string(e) }
func (reply) RedisError()     {}
