package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A lock with a size has that many slots. A contender asks for some of them, and
// is admitted when it is first in line and enough are free. Who has which slot is
// in the directory's record, which each admission writes; a release just removes
// the node, so a seat counts only for as long as its node is there.

// A seat is a contender that was admitted, and its slots.
type seat struct {
	Seq   int64
	Slots []int // ascending
}

// A verdict is what is to be done with the first in line.
type verdict int

const (
	fits    verdict = iota
	full            // not enough is free
	tooMany         // it asks for more than there will ever be
)

// judge says what becomes of a request for n of size slots while the seats are
// taken, and if it fits, which slots it gets: the lowest that are free. After a
// lock was made smaller, slots beyond its size may still be taken, and count.
func judge(size, n int, taken []seat) (verdict, []int) {
	if n > size {
		return tooMany, nil
	}
	used := 0
	busy := make(map[int]bool)
	for _, s := range taken {
		used += len(s.Slots)
		for _, i := range s.Slots {
			busy[i] = true
		}
	}
	if used+n > size {
		return full, nil
	}
	slots := make([]int, 0, n)
	for i := 0; len(slots) < n; i++ {
		if !busy[i] {
			slots = append(slots, i)
		}
	}
	return fits, slots
}

// encodeSeats writes seats as "39:0;41:1-2,5".
func encodeSeats(seats []seat) string {
	sorted := slices.Clone(seats)
	slices.SortFunc(sorted, func(a, b seat) int { return cmp.Compare(a.Seq, b.Seq) })
	var b strings.Builder
	for i, s := range sorted {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, "%d:%s", s.Seq, encodeSlots(s.Slots))
	}
	return b.String()
}

func parseSeats(s string) ([]seat, error) {
	if s == "" {
		return nil, nil
	}
	var seats []seat
	for _, one := range strings.Split(s, ";") {
		number, list, _ := strings.Cut(one, ":")
		seq, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("seat %q: want number:slots", one)
		}
		slots, err := parseSlots(list)
		if err != nil {
			return nil, err
		}
		seats = append(seats, seat{int64(seq), slots})
	}
	return seats, nil
}

// encodeSlots writes ascending slots as "1-2,5".
func encodeSlots(slots []int) string {
	var b strings.Builder
	for i := 0; i < len(slots); {
		j := i
		for j+1 < len(slots) && slots[j+1] == slots[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(slots[i]))
		if j > i {
			fmt.Fprintf(&b, "-%d", slots[j])
		}
		i = j + 1
	}
	return b.String()
}

// parseSlots is strict: what it takes, encodeSlots writes.
func parseSlots(s string) ([]int, error) {
	bad := func() ([]int, error) { return nil, fmt.Errorf("slots %.40q: want numbers such as 1-2,5", s) }
	var slots []int
	last := -1
	for _, run := range strings.Split(s, ",") {
		from, to, isRun := strings.Cut(run, "-")
		if !isRun {
			to = from
		}
		a, errA := strconv.ParseUint(from, 10, 32)
		b, errB := strconv.ParseUint(to, 10, 32)
		if errA != nil || errB != nil || int(a) <= last || b < a || b >= MaxSize {
			return bad()
		}
		for i := int(a); i <= int(b); i++ {
			slots = append(slots, i)
		}
		last = int(b)
	}
	return slots, nil
}
