package queue

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// A What says of which kind the lock at a path is.
type What struct {
	Recipe string // as in the directory's record; "" where nobody has used it
	Size   int    // of a lock with slots
}

// ErrNothingSaid: nothing at a path says that it is a lock, though it may have been
// one, in a directory that somebody else made, while somebody was in line.
var ErrNothingSaid = errors.New("nobody is in line")

// identified are the recipes that Identify knows, and the keywords by which it knows
// those that other libraries have, too, and so may have made the directory.
var identified = map[string][]string{
	Exclusive.Name: {Contender.Text, "__lock__"},
	"rwlock":       {"__READ__", "__WRIT__"},
	"semaphore":    nil, // its size is in the record
	"election":     {"candidate-"},
}

// strange are contenders of no lock that we know how to read.
var strange = map[string]string{
	"__rlock__": "a reader of kazoo's is in line",
	"latch-":    "a candidate of Curator's LeaderLatch is in line",
	"lease-":    "a semaphore's contender is in line, and no size is there",
	"member-":   "a member of a group is there",
}

// Identify says what kind of lock a node is, by its data, and if those say nothing,
// by the names below it. The error says why it is none.
func Identify(data []byte, stat *zk.Stat, names []string) (What, error) {
	if stat.EphemeralOwner != 0 && stat.EphemeralOwner != containerOwner {
		return What{}, errors.New("it is an ephemeral node, such as contenders have below their lock")
	}
	r, ours := parseRecord(data)
	if r.Recipe != "" {
		_, known := identified[r.Recipe]
		switch {
		case r.Recipe == gateName && r.Weight > 0:
			return What{}, errors.New("it is the queue of one flow of a fair lock")
		case !known:
			return What{}, fmt.Errorf("its recipe is %s", r.Recipe)
		case r.Recipe == "semaphore" && (r.Size < 1 || r.Size > MaxSize):
			return What{}, fmt.Errorf("it is a semaphore of size %d", r.Size)
		}
		return What{r.Recipe, r.Size}, nil
	}
	recipe, err := byNames(names)
	switch {
	case err != nil || recipe != "":
		return What{Recipe: recipe}, err
	case !ours:
		return What{}, fmt.Errorf("%w, and somebody else's data is there", ErrNothingSaid)
	case len(names) > 0:
		return What{}, fmt.Errorf("%w, and other nodes are below it, such as %q", ErrNothingSaid, slices.Min(names))
	}
	return What{}, nil
}

// byNames returns the recipe whose contenders have those names; "" if there are none.
func byNames(names []string) (recipe string, err error) {
	for _, name := range names {
		for text, why := range strange {
			if _, is := parse(name, []Keyword{{Text: text}}); is {
				return "", errors.New(why)
			}
		}
		for r, texts := range identified {
			for _, text := range texts {
				if _, is := parse(name, []Keyword{{Text: text}}); !is {
					continue
				}
				if recipe != "" && recipe != r {
					return "", errors.New("contenders of more than one recipe are in line")
				}
				recipe = r
			}
		}
	}
	return recipe, nil
}

// FlowsPath returns where the flows of a fair lock have their nodes, and GatePath
// where those of one flow queue, which has the node with that name there.
func FlowsPath(path string) string { return path + ".flows" }

func GatePath(path, flow string) string { return FlowsPath(path) + "/" + flow + gateChild }

// gateChild is what comes after the flow's own node.
const gateChild = "/queue"
