package queue

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var keywords = []Keyword{{Text: "lock-", Kind: "lock"}, {Text: "__lock__", Kind: "kazoo"}, {Text: "__READ__", Kind: "read"}}

// case 55, case 58, case 59
func TestNames(t *testing.T) {
	for name, want := range map[string]Node{
		"lock-0000000000":         {Kind: "lock", Seq: 0},
		"3e8c1-lock-0000000012":   {Kind: "lock", Seq: 12},
		"lock-2147483647":         {Kind: "lock", Seq: math.MaxInt32},
		"x-lock--2147483648":      {Kind: "lock", Seq: 1 << 31},
		"x-lock--000000001":       {Kind: "lock", Seq: 1<<32 - 1},
		"lock-lock-0000000003":    {Kind: "lock", Seq: 3},
		"9f__lock__0000000004":    {Kind: "kazoo", Seq: 4},
		"x-__READ__0000000005":    {Kind: "read", Seq: 5},
		"lock-__lock__0000000006": {Kind: "kazoo", Seq: 6},
		"_c_5f2c1f9e-8c26-4d3f-9d8c-0a8e6c0f5b11-lock-0000000007": {Kind: "lock", Seq: 7},
		"_c_9f86d081884c7d659a2feaa0c55ad015-lock-0000000008":     {Kind: "lock", Seq: 8},
	} {
		want.Name = name
		if n, ok := parse(name, keywords); !ok || n != want {
			t.Errorf("%q: %+v, %v", name, n, ok)
		}
	}
	for _, name := range []string{"", "lock-", "lock-1", "lock-000000001", "lock-00000000001", "lock--0000000001", "lock--000000000", "lock-99999999999", "lock-2147483648",
		"lock-+000000001", "lock- 000000001", "lock-0x00000001", "lock-1_000_0000", "lock-٠٠٠٠٠", "lock-000000000a", "LOCK-0000000001",
		"lock0000000001", "0000000001", "lock--2147483649", "lock---00000001", "lock-0000000001 ", "lock-0000000001-x", "__lock_0000000001",
		keeper} {
		if n, ok := parse(name, keywords); ok {
			t.Errorf("%q is taken for a contender: %+v", name, n)
		}
	}
}

// What we name, we can parse and compute; what is parsed sorts by number.
func TestNamesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := prefix(rapid.Int64Range(1, math.MaxInt64).Draw(t, "czxid"), "lock-")
		a, b := rapid.Int64Range(0, seqLimit).Draw(t, "a"), rapid.Int64Range(0, seqLimit).Draw(t, "b")
		na, ok := parse(nameAt(p, a), keywords)
		nb, ok2 := parse(nameAt(p, b), keywords)
		if !ok || !ok2 || na.Seq != a || nb.Seq != b || nameAt(p, na.Seq) != na.Name {
			t.Fatalf("%d: %+v, %d: %+v", a, na, b, nb)
		}
		if (compare(na, nb) < 0) != (a < b) {
			t.Fatalf("%d and %d sort wrongly", a, b)
		}
	})
}

// Whatever stands before the keyword, the number decides.
func TestNamesOfAnyBeginning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lead := rapid.String().Draw(t, "lead")
		seq := rapid.Int32().Draw(t, "seq")
		k := rapid.SampledFrom(keywords).Draw(t, "keyword")
		n, ok := parse(lead+k.Text+fmt.Sprintf("%010d", seq), keywords)
		if !ok || n.Seq != int64(uint32(seq)) || n.Kind != k.Kind {
			t.Fatalf("%+v, %v", n, ok)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"lock-0000000000", "a-lock--000000001", "lock-lock-", "__lock__2147483647", "", "lock-\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		n, ok := parse(name, keywords)
		if !ok {
			return
		}
		if n.Seq < 0 || n.Seq > math.MaxUint32 || n.Name != name || n.Kind == "" {
			t.Errorf("%q: %+v", name, n)
		}
		// It ends with a keyword and the number as the server writes it.
		var written bool
		for _, k := range keywords {
			written = written || strings.HasSuffix(name, k.Text+fmt.Sprintf("%010d", int32(uint32(n.Seq))))
		}
		if !written {
			t.Errorf("%q was read as %d", name, n.Seq)
		}
	})
}
