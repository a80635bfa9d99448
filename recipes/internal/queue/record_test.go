package queue

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawRecord(t *rapid.T) record {
	n := func(name string) int64 {
		return rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 1<<40)).Draw(t, name)
	}
	r := newRecord(rapid.SampledFrom([]string{"mutex", "rwlock", "x"}).Draw(t, "recipe"))
	if rapid.Bool().Draw(t, "has a directory") {
		r.Dir = n("dir") + 1
		r.Released = n("released") - 1
	}
	if rapid.Bool().Draw(t, "has a holder") {
		r.Holder = n("holder")
		r.Delay = time.Duration(n("delay")%86400001) * time.Millisecond
		r.Died = rapid.Bool().Draw(t, "died")
		r.Since = n("since")
	}
	if rapid.Bool().Draw(t, "flows") {
		n := rapid.Int64Min(0)
		r.Weight = rapid.IntRange(0, 1_000_000).Draw(t, "weight")
		r.Clock = Clock{n.Draw(t, "level"), n.Draw(t, "low"), n.Draw(t, "only"), n.Draw(t, "round")}
	}
	return r
}

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		got, ours := parseRecord(r.encode())
		if !ours || got != r {
			t.Fatalf("%q: %+v, want %+v", r.encode(), got, r)
		}
		// Words of a later version are passed over.
		got, ours = parseRecord([]byte(string(r.encode()) + " new=5 newer"))
		if !ours || got != r {
			t.Fatalf("with unknown words: %+v, want %+v", got, r)
		}
	})
}

func TestRecordsOfSomebodyElse(t *testing.T) {
	for data, want := range map[string]bool{
		"": true, "lockkeeper mutex": true, "lockkeeper": false, "127.0.0.1": false, "{}": false, "\x00": false,
		"Lockkeeper mutex": false, "lockkeepers mutex": false, " ": false,
	} {
		if r, ours := parseRecord([]byte(data)); ours != want || r.Released != -1 || r.Holder != -1 {
			t.Errorf("%q: ours %v, %+v", data, ours, r)
		}
	}
	r, ours := parseRecord([]byte("lockkeeper mutex released=x holder=-3 delay=99999999999999999999 since dir="))
	if want := newRecord("mutex"); !ours || r != want {
		t.Errorf("numbers that are none: %+v", r)
	}
}

// The numbers of a record count in its own directory only.
func TestRecordOfAnotherDirectory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		czxid := rapid.Int64Range(1, 5).Draw(t, "czxid")
		got := r.in(czxid)
		switch {
		case r.Dir == czxid && got != r:
			t.Fatalf("its own: %+v of %+v", got, r)
		case r.Dir != czxid && (got.Released != -1 || got.Holder != -1 || got.died(1<<40) || got.Recipe != r.Recipe):
			t.Fatalf("another's: %+v of %+v", got, r)
		case got.Dir != czxid:
			t.Fatalf("%+v", got)
		}
	})
}

func TestRecordOfADeath(t *testing.T) {
	for _, c := range []struct {
		released, holder, seq int64
		want                  bool
	}{
		{-1, -1, 5, false}, // nobody asked for a delay
		{-1, 4, 5, true},
		{3, 4, 5, true},
		{4, 4, 5, false},  // released
		{-1, 5, 5, false}, // ourselves
		{-1, 0, 1, true},
	} {
		if got := (record{Released: c.released, Holder: c.holder}).died(c.seq); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte("lockkeeper mutex dir=7 released=41 holder=42 delay=1000 died since=1700000000000"))
	f.Add([]byte("lockkeeper rwlock released=-1"))
	f.Add([]byte("lockkeeper \x00 delay=9223372036854775807"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, ours := parseRecord(data)
		if !ours {
			return
		}
		if r.Delay > 24*time.Hour || r.Released < -1 || r.Holder < -1 || r.Delay < 0 || r.Since < 0 || r.Dir < 0 {
			t.Errorf("%q: %+v", data, r)
		}
		again, ours := parseRecord(r.encode())
		if r.Recipe != "" && (!ours || again.Recipe != r.Recipe || again.Released != r.Released) || strings.Contains(r.Recipe, " ") {
			t.Errorf("%q: %+v, then %+v", data, r, again)
		}
	})
}
