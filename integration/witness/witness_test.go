package witness_test

import (
	"testing"

	"github.com/lockkeeper/lockkeeper/integration/witness"
	"github.com/lockkeeper/lockkeeper/recipes"
)

// failures is a test that only counts them.
type failures struct {
	testing.TB
	count int
}

func (f *failures) Errorf(string, ...any) { f.count++ }

func TestWitness(t *testing.T) {
	for _, test := range []struct {
		name   string
		second recipes.Token // the first visitor's is 5
		leaves bool          // before the second comes
		want   int
	}{
		{"InTurn", 6, true, 0},
		{"AtOnce", 6, false, 1},
		{"TokenFalls", 4, true, 1},
		{"TokenRepeated", 5, true, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			fails := &failures{TB: t}
			w := witness.New(fails)
			visit := func() *witness.Visitor {
				v, err := witness.Visit(w.Addr())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { v.Close() })
				return v
			}
			one, two := visit(), visit()
			one.Enter(5)
			if test.leaves {
				one.Leave()
			}
			two.Enter(test.second)
			if fails.count != test.want {
				t.Errorf("%d failures, want %d", fails.count, test.want)
			}
			if w.Uses() != 2 {
				t.Errorf("%d uses", w.Uses())
			}
		})
	}
}
