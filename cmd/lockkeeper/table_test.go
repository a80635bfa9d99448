package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes/inspect"
)

func TestTable(t *testing.T) {
	at := time.Date(2026, 3, 1, 9, 30, 10, 0, time.UTC)
	c := func(place int, owner string, edit ...func(*inspect.Contender)) inspect.Contender {
		c := inspect.Contender{Place: place, Holding: place == 0, Owner: owner, Kind: "lock", Token: 4294967299, Since: at.Add(-10 * time.Second), Age: 10 * time.Second}
		for _, f := range edit {
			f(&c)
		}
		return c
	}
	for name, tt := range map[string]struct {
		q    inspect.Queue
		want string
	}{
		"nobody": {inspect.Queue{Path: "/locks/a", Time: at}, "/locks/a at 2026-03-01T09:30:10Z: nobody in line"},
		"nobody at a lock": {inspect.Queue{Path: "/locks/a", Recipe: inspect.RWLock, Time: at},
			"/locks/a at 2026-03-01T09:30:10Z: rwlock, nobody in line"},
		"mutex": {inspect.Queue{Path: "/locks/a", Recipe: inspect.Mutex, Time: at, Contenders: []inspect.Contender{c(0, "a"), c(1, "bcdefgh"), c(2, "")}}, `
/locks/a at 2026-03-01T09:30:10Z: mutex, 1 holds, 2 wait
PLACE  STATE    OWNER    TOKEN       SINCE                 AGE
0      holding  a        4294967299  2026-03-01T09:30:00Z  10s
1      waiting  bcdefgh  4294967299  2026-03-01T09:30:00Z  10s
2      waiting  -        4294967299  2026-03-01T09:30:00Z  10s`},
		"flows": {inspect.Queue{Path: "/locks/a", Recipe: inspect.Fair, Time: at, Contenders: []inspect.Contender{
			c(0, "a"), c(1, "b", func(c *inspect.Contender) { c.Flow = "two words" })}}, `
/locks/a at 2026-03-01T09:30:10Z: fair, 1 holds, 1 waits
PLACE  STATE    FLOW         OWNER  TOKEN       SINCE                 AGE
0      holding  -            a      4294967299  2026-03-01T09:30:00Z  10s
1      waiting  "two words"  b      4294967299  2026-03-01T09:30:00Z  10s`},
		"semaphore": {inspect.Queue{Path: "/locks/a", Recipe: inspect.Semaphore, Size: 3, Time: at, Contenders: []inspect.Contender{
			c(0, "a", func(c *inspect.Contender) { c.Permits, c.Slots = 2, []int{0, 2} }), c(1, "b", func(c *inspect.Contender) { c.Permits = 2 })}}, `
/locks/a at 2026-03-01T09:30:10Z: semaphore of 3, 1 holds, 1 waits
PLACE  STATE    OWNER  TOKEN       PERMITS  SLOTS  SINCE                 AGE
0      holding  a      4294967299  2        0,2    2026-03-01T09:30:00Z  10s
1      waiting  b      4294967299  2        -      2026-03-01T09:30:00Z  10s`},
		"a hostile owner": {inspect.Queue{Path: "/locks/a", Recipe: inspect.Mutex, Time: at, Contenders: []inspect.Contender{c(0, "a\x1b[2J\nb")}}, `
/locks/a at 2026-03-01T09:30:10Z: mutex, 1 holds, 0 wait
PLACE  STATE    OWNER          TOKEN       SINCE                 AGE
0      holding  "a\x1b[2J\nb"  4294967299  2026-03-01T09:30:00Z  10s`},
	} {
		t.Run(name, func(t *testing.T) {
			want := strings.TrimPrefix(tt.want, "\n")
			if got := strings.Join(table(tt.q), "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 42 * time.Millisecond: "0s", 5240 * time.Millisecond: "5.2s", 59*time.Minute + 1900*time.Millisecond: "59m1s",
		12*time.Hour + 3*time.Minute + 59*time.Second: "12h3m", 10 * time.Hour: "10h0m", 50 * time.Hour: "2d2h",
	} {
		if got := age(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// A screen that understands what picture sends: the lines on it, and the cursor.
type screen struct {
	lines []string
	at    int
}

func (s *screen) Write(b []byte) (int, error) {
	text := string(b)
	for text != "" {
		var n int
		switch {
		case text[0] == '\r':
			text = text[1:]
		case text[0] == '\n':
			s.at++
			text = text[1:]
		case strings.HasPrefix(text, "\x1b[K"):
			text = text[3:]
		case strings.HasPrefix(text, "\x1b[J"):
			s.lines = s.lines[:min(s.at, len(s.lines))]
			text = text[3:]
		case strings.HasPrefix(text, "\x1b["):
			fmt.Sscanf(text, "\x1b[%dA", &n)
			s.at -= n
			text = text[strings.IndexByte(text, 'A')+1:]
		default:
			end := strings.IndexAny(text, "\r\n\x1b")
			for len(s.lines) <= s.at {
				s.lines = append(s.lines, "")
			}
			s.lines[s.at] = text[:end] // the rest of the line is erased
			text = text[end:]
		}
	}
	return len(b), nil
}

func TestPicture(t *testing.T) {
	var p picture
	s := &screen{lines: []string{"$ show"}, at: 1}
	for _, tt := range []struct {
		lines         []string
		width, height int
		want          string
	}{
		{[]string{"one", "two", "three"}, 80, 24, "$ show|one|two|three"},
		{[]string{"1"}, 80, 24, "$ show|1"},
		{[]string{"one", "two", "three", "four"}, 0, 0, "$ show|one|two|three|four"},
		{[]string{"one", "two", "three", "four"}, 80, 4, "$ show|one|two|… and 2 more"},
		{[]string{"one", "two", "three"}, 80, 4, "$ show|one|two|three"},
		{[]string{"three", "日本語"}, 4, 24, "$ show|thre|日本"},
	} {
		if err := p.draw(s, tt.lines, tt.width, tt.height); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.lines, "|"); got != tt.want || s.at != len(s.lines) {
			t.Errorf("%q, cursor in line %d, want %q", got, s.at, tt.want)
		}
	}
}

func TestWriteJSONIsOneLine(t *testing.T) {
	var b bytes.Buffer
	q := inspect.Queue{Path: "/locks/<a>", Contenders: []inspect.Contender{{Owner: "a\nb & c"}}}
	if err := writeJSON(&b, q); err != nil || strings.Count(b.String(), "\n") != 1 || !strings.Contains(b.String(), `"/locks/<a>"`) {
		t.Errorf("%q, %v", b.String(), err)
	}
}
