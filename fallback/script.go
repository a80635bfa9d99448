package fallback

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var sources embed.FS

// A script is sent by its hash, and in full where the server doesn't know it: after
// a restart, a failover, SCRIPT FLUSH, or on a new shard.
type script struct{ source, hash string }

// load puts a script together from files of this package.
func load(names ...string) *script {
	s := &script{}
	for _, name := range names {
		text, err := sources.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic(err) // a fault of the build
		}
		s.source += string(text)
	}
	sum := sha1.Sum([]byte(s.source))
	s.hash = hex.EncodeToString(sum[:])
	return s
}

// A query is one run of a script.
type query struct {
	script *script
	keys   []string
	args   []any
}

func (q query) command(ctx context.Context, full bool) *redis.Cmd {
	name, body := "evalsha", q.script.hash
	if full {
		name, body = "eval", q.script.source
	}
	all := make([]any, 0, 3+len(q.keys)+len(q.args))
	all = append(all, name, body, len(q.keys))
	for _, k := range q.keys {
		all = append(all, k)
	}
	return redis.NewCmd(ctx, append(all, q.args...)...)
}

// once is a command that the client must not send again by itself, whatever its
// MaxRetries: whether that is safe is decided here, where it is known what became
// of the first.
type once struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }

func unknownScript(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }

// run runs a script once. It takes as long as the Redis client lets it.
func (c *Client) run(ctx context.Context, q query) ([]any, error) {
	cmd := q.command(ctx, false)
	err := c.rdb.Process(ctx, once{cmd})
	if unknownScript(err) {
		cmd = q.command(ctx, true)
		err = c.rdb.Process(ctx, once{cmd})
	}
	if err != nil {
		return nil, err
	}
	return cmd.Slice()
}

// runAll runs many scripts in one pipeline (one for each node of a cluster).
func (c *Client) runAll(ctx context.Context, queries []query) []result {
	results := make([]result, len(queries))
	todo := make([]int, len(queries))
	for i := range queries {
		todo[i] = i
	}
	for _, full := range []bool{false, true} {
		pipe := c.rdb.Pipeline()
		cmds := make([]*redis.Cmd, len(todo))
		for n, i := range todo {
			cmds[n] = queries[i].command(ctx, full)
			pipe.Process(ctx, once{cmds[n]})
		}
		pipe.Exec(ctx) // what became of each is in the commands
		var again []int
		for n, i := range todo {
			results[i].reply, results[i].err = cmds[n].Slice()
			if !full && unknownScript(cmds[n].Err()) {
				again = append(again, i)
			}
		}
		if todo = again; len(todo) == 0 {
			break
		}
	}
	return results
}

type result struct {
	reply []any
	err   error
}

// runAndWait runs a script, and on the same connection behind it WAIT: the number of
// replicas that acknowledged is of the script's own writes only there.
func (c *Client) runAndWait(ctx context.Context, q query, replicas int, timeout time.Duration) (reply []any, acks int, err error) {
	var node interface{ Pipeline() redis.Pipeliner } = c.rdb
	if cluster, ok := c.rdb.(*redis.ClusterClient); ok {
		if node, err = cluster.MasterForKey(ctx, q.keys[0]); err != nil {
			return nil, 0, err
		}
	}
	var cmd, wait *redis.Cmd
	for _, full := range []bool{false, true} {
		pipe := node.Pipeline()
		cmd = q.command(ctx, full)
		wait = redis.NewCmd(ctx, "wait", strconv.Itoa(replicas), strconv.FormatInt(timeout.Milliseconds(), 10))
		pipe.Process(ctx, once{cmd})
		pipe.Process(ctx, once{wait})
		pipe.Exec(ctx)
		if !unknownScript(cmd.Err()) {
			break
		}
	}
	if reply, err = cmd.Slice(); err != nil {
		return nil, 0, err
	}
	acks, _ = wait.Int() // no answer is no acknowledgement
	return reply, acks, nil
}

// number reads an integer of a script's reply.
func number(reply []any, i int) int64 {
	if i >= len(reply) {
		return 0
	}
	n, _ := reply[i].(int64)
	return n
}
