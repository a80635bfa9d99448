package queue

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		size, n int
		taken   string
		want    verdict
		slots   []int
	}{
		{1, 1, "", fits, []int{0}},
		{1, 1, "4:0", full, nil},
		{1, 2, "", tooMany, nil},
		{1, 2, "4:0", tooMany, nil},
		{3, 2, "4:1", fits, []int{0, 2}},
		{3, 3, "4:1", full, nil},
		{5, 2, "4:0;6:2;7:4", fits, []int{1, 3}},
		{5, 3, "4:0;6:2;7:4", full, nil},
		{2, 1, "4:3", fits, []int{0}},   // made smaller while slot 3 was taken
		{2, 2, "4:3", full, nil},        // which counts
		{2, 1, "4:3-4", full, nil},      // as do both of these
		{3, 1, "4:0,3", fits, []int{1}}, // one within, one beyond
	} {
		seats, err := parseSeats(c.taken)
		if err != nil {
			t.Fatal(err)
		}
		v, slots := judge(c.size, c.n, seats)
		if v != c.want || !slices.Equal(slots, c.slots) {
			t.Errorf("size %d, %d asked for, %q taken: %v %v, want %v %v", c.size, c.n, c.taken, v, slots, c.want, c.slots)
		}
	}
}

// Whatever comes and goes and however the size changes: what is admitted fits, no
// slot is given twice, and what is given are the lowest.
func TestJudgeAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 8).Draw(t, "size")
		var seats []seat
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				if len(seats) > 0 {
					j := rapid.IntRange(0, len(seats)-1).Draw(t, "leaves")
					seats = slices.Delete(seats, j, j+1)
				}
			case 1:
				size = rapid.IntRange(1, 8).Draw(t, "new size")
			default:
				n := rapid.IntRange(1, 8).Draw(t, "n")
				var used []int
				for _, s := range seats {
					used = append(used, s.Slots...)
				}
				v, got := judge(size, n, seats)
				want := fits
				switch {
				case n > size:
					want = tooMany
				case len(used)+n > size:
					want = full
				}
				if v != want || (v == fits) != (len(got) == n) {
					t.Fatalf("%v %v, want %v", v, got, want)
				}
				for _, slot := range got {
					if slot < 0 || slot >= size || slices.Contains(used, slot) {
						t.Fatalf("slot %d of %d, used %v", slot, size, used)
					}
					for lower := range slot {
						if !slices.Contains(used, lower) {
							t.Fatalf("slot %d while %d is free", slot, lower)
						}
					}
					used = append(used, slot)
				}
				if v == fits {
					seats = append(seats, seat{int64(i), got})
				}
			}
			back, err := parseSeats(encodeSeats(seats))
			if err != nil || len(seats) > 0 && !reflect.DeepEqual(back, seats) || len(back) != len(seats) {
				t.Fatalf("%v became %v, %v", seats, back, err)
			}
		}
	})
}

func FuzzParseSeats(f *testing.F) {
	for _, s := range []string{"", "1:0", "39:0;41:1-2,5", "1:2,1", "1:", ":", "1:0-99999", "-1:0", "1:3-2", "1:0;1:0", "1:+1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		seats, err := parseSeats(s)
		if err != nil {
			return
		}
		back, err := parseSeats(encodeSeats(seats))
		if err != nil || len(back) != len(seats) {
			t.Fatalf("%q: %v, then %v, %v", s, seats, back, err)
		}
		for _, x := range seats {
			if len(x.Slots) == 0 || !slices.IsSorted(x.Slots) || x.Slots[0] < 0 || x.Slots[len(x.Slots)-1] >= MaxSize {
				t.Fatalf("%q: %v", s, x)
			}
		}
	})
}

// The record of a lock whose every slot has a holder of its own fits into a node.
func TestLargestRecordFitsIntoANode(t *testing.T) {
	var seats []seat
	for i := range MaxSize {
		seats = append(seats, seat{seqLimit - int64(i), []int{i}})
	}
	r := newRecord("semaphore")
	r.Dir, r.Size, r.Released, r.Seats = 1<<62, MaxSize, seqLimit, encodeSeats(seats)
	if n := len(r.encode()); n > 1<<19 {
		t.Errorf("%d bytes", n)
	}
	back, ours := parseRecord(r.encode())
	if !ours || back != r {
		t.Error("it is not read as it was written")
	}
}

func TestRecordWithSize(t *testing.T) {
	text := "lockkeeper semaphore dir=3201 size=3 admitted=41 slots=39:0;41:1-2"
	r, ours := parseRecord([]byte(text))
	want := newRecord("semaphore")
	want.Dir, want.Size, want.Released, want.Seats = 3201, 3, 41, "39:0;41:1-2"
	if !ours || r != want || string(r.encode()) != text {
		t.Errorf("%+v, %q", r, r.encode())
	}
	// In another directory only the size counts.
	if r := r.in(7); r.Size != 3 || r.Seats != "" || r.Released != -1 || r.Dir != 7 {
		t.Errorf("%+v", r)
	}
}

func (v verdict) String() string { return fmt.Sprint([]string{"fits", "full", "tooMany"}[v]) }
