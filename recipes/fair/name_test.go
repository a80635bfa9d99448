package fair

import (
	"strings"
	"testing"

	"github.com/lockkeeper/lockkeeper/session"
)

// A flow's node tells its name, and is a path's element that every server takes.
func FuzzNodeName(f *testing.F) {
	for _, name := range []string{"a", ".", "..", "...", "/", "%", "%2E", "%2e", "a b+c", "Ä\U0001F600\uFFFD", "\uf8ff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if (flow{name, 1}).check() != nil {
			return
		}
		node := nodeName(name)
		if back, ok := flowName(node); !ok || back != name {
			t.Errorf("%q is %q, which is %q, %v", name, node, back, ok)
		}
		if err := session.ValidatePath("/x.flows/" + node + "/queue"); err != nil || strings.Contains(node, "/") {
			t.Errorf("%q is %q: %v", name, node, err)
		}
	})
}

// Every node that is taken for a flow's is the node of that flow, and of no other.
func FuzzFlowName(f *testing.F) {
	for _, node := range []string{"a", "%2e", "%2E", "%2F", "%", "a+b", "%61", "Ä"} {
		f.Add(node)
	}
	f.Fuzz(func(t *testing.T, node string) {
		if name, ok := flowName(node); ok && nodeName(name) != node {
			t.Errorf("%q is taken for the flow %q, whose node is %q", node, name, nodeName(name))
		}
	})
}
