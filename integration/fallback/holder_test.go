package fallback_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockkeeper/lockkeeper/fallback"
	"github.com/lockkeeper/lockkeeper/integration/await"
	"github.com/lockkeeper/lockkeeper/integration/child"
	"github.com/lockkeeper/lockkeeper/integration/interop"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// holderEnv has the settings of a process that is started as a holder.
const holderEnv = "LOCKKEEPER_TEST_HOLDER"

// settings are how a holder uses a lock.
type settings struct {
	Addr, Key string
	TTL, Live time.Duration
}

// startHolder starts a process of this test binary that does as it is told:
//
//	lock     held
//	token    the token
//	err      what the grant says first when it is asked; "<nil>" if it stands
//	release  released, or the error
//	wait     waiting, when ten more of its goroutines have asked for the lock
func startHolder(t *testing.T, s settings) *interop.Client {
	t.Helper()
	return interop.Start(t, "holder", child.Again(t, holderEnv, s))
}

// hold is the holder's main function. It ends with its input.
func hold(text string) int {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	c, err := fallback.New(redis.NewClient(&redis.Options{Addr: s.Addr}))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer c.Close()
	// each goroutine is a contender on the server
	m, err := fallback.NewMutex(c, s.Key, fallback.TTL(s.TTL), fallback.WaiterTimeout(s.Live), fallback.Passes(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready")
	ctx := context.Background()
	var g *recipes.Grant
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "lock":
			if g, err = m.Lock(ctx); err != nil {
				fmt.Println(err)
				continue
			}
			fmt.Println("held")
		case "token":
			fmt.Println(g.Token())
		case "err":
			fmt.Println(g.Err())
		case "release":
			if err := g.Release(ctx); err != nil {
				fmt.Println(err)
				continue
			}
			fmt.Println("released")
		case "wait":
			for range 10 {
				go m.Lock(ctx)
			}
			fmt.Println("waiting")
		}
	}
	return 0
}

// ask returns a holder's answer.
func ask(t *testing.T, h *interop.Client, command string) string {
	t.Helper()
	answer, err := h.Ask(await.Context(t), command)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}
