package fallback

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// checkClient refuses clients that would make locks unsafe, whatever the server.
// It reports whether rdb heeds the deadlines of contexts, and after what time it stops
// to wait for an answer, or 0.
func checkClient(rdb redis.UniversalClient) (obeys bool, timeout time.Duration, err error) {
	switch c := rdb.(type) {
	case *redis.Ring:
		return false, 0, fmt.Errorf("%w: New: a Ring moves keys to other servers by itself: want a Client or a ClusterClient", recipes.ErrInvalid)
	case *redis.Client:
		timeout, obeys = c.Options().ReadTimeout, c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		timeout, obeys = c.Options().ReadTimeout, c.Options().ContextTimeoutEnabled
	default:
		return true, 0, nil // it may
	}
	if timeout <= 0 && !obeys {
		return false, 0, fmt.Errorf("%w: New: the Redis client has no ReadTimeout: set one below the TTL, or ContextTimeoutEnabled", recipes.ErrInvalid)
	}
	return obeys, timeout, nil
}

// checkServers asks every master whether it keeps keys, and returns a name of the
// service that no other has, or "".
func checkServers(rdb redis.UniversalClient, cfg config, log *slog.Logger) (realm string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch c := rdb.(type) {
	case *redis.ClusterClient:
		var mu sync.Mutex
		err := c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			id, err := checkServer(ctx, node, cfg, log)
			mu.Lock()
			defer mu.Unlock()
			if realm == "" || id < realm {
				realm = id
			}
			return err
		})
		return realm, err
	case *redis.Client:
		id, err := checkServer(ctx, c, cfg, log)
		if id != "" {
			id += "/" + strconv.Itoa(c.Options().DB)
		}
		return id, err
	}
	_, err = checkServer(ctx, rdb, cfg, log)
	return "", err
}

type asker interface {
	Do(ctx context.Context, args ...any) *redis.Cmd
}

func checkServer(ctx context.Context, node asker, cfg config, log *slog.Logger) (runID string, err error) {
	info := map[string]string{}
	for _, section := range []string{"server", "memory"} {
		type answer struct {
			text string
			err  error
		}
		got := make(chan answer, 1)
		go func() { // ends with the client's own time-out, if not with ctx
			text, err := node.Do(ctx, "info", section).Text()
			got <- answer{text, err}
		}()
		var a answer
		select {
		case a = <-got:
		case <-ctx.Done():
			a.err = ctx.Err()
		}
		if a.err != nil {
			if fateOf(a.err) != refused || strings.Contains(a.err.Error(), "closed") {
				return "", fmt.Errorf("lockkeeper: New: no answer from a server to what it is (INFO): %w", a.err)
			}
			log.Warn("the server does not say whether it evicts keys: it must not", "error", a.err)
			continue
		}
		for line := range strings.Lines(a.text) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				info[k] = v
			}
		}
	}
	policy := info["maxmemory_policy"]
	if policy != "" && policy != "noeviction" && info["maxmemory"] != "0" && !cfg.evicting {
		return "", fmt.Errorf("%w: New: the server's maxmemory-policy is %s: it would remove locks that are held; want noeviction, or the option AllowEviction",
			recipes.ErrInvalid, policy)
	}
	return info["run_id"], nil
}
