package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/recipes"
)

// The demo's check finds what it is there to find.
func TestDemoCheck(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	good := []turn{{token: 3, start: at(1), over: at(2)}, {token: 5, start: at(2), over: at(4)}, {token: 9, start: at(7), over: at(8)}}
	for _, tt := range []struct {
		name string
		harm func(s *story)
		want string // in the error
	}{
		{"Good", func(*story) {}, ""},
		{"TokenEqual", func(s *story) { s.turns[1].token = 3 }, "token 3 came after token 3"},
		{"TokenFell", func(s *story) { s.turns[2].token = 4 }, "token 4 came after token 5"},
		{"Overlap", func(s *story) { s.turns[0].over = at(3) }, "token 5 was granted before"},
		{"NeverOver", func(s *story) { s.turns[1].over = time.Time{} }, "token 9 was granted before"},
		{"GrantMissing", func(s *story) { s.turns = s.turns[:2] }, "2 grants"},
		{"CallbackMissing", func(s *story) { s.revocations = 0 }, "0 revocations"},
		{"CallbackTwice", func(s *story) { s.revocations = 2 }, "2 revocations"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			s := &story{w: &out, turns: append([]turn(nil), good...), revocations: 1}
			tt.harm(s)
			err := s.check(3, 1)
			switch {
			case tt.want == "" && (err != nil || !strings.Contains(out.String(), "ok: 3 grants, 1 of them revoked")):
				t.Errorf("check: %v, output %q", err, out.String())
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("check: %v, want %q", err, tt.want)
			case tt.want != "" && exitCode(err) != exitFailure:
				t.Errorf("exit code %d, want %d", exitCode(err), exitFailure)
			case tt.want != "" && out.Len() > 0:
				t.Errorf("output %q in spite of the failure", out.String())
			}
		})
	}
}

// Two that hold at once, for the oracle of the whole: a story that is told so.
func TestDemoStory(t *testing.T) {
	var out bytes.Buffer
	s := &story{w: &out, start: time.Now()}
	first := s.granted("worker 1", recipes.Token(7))
	s.granted("worker 2", recipes.Token(8))
	s.ended(first, "released", "worker 1", 7, "")
	if err := s.check(2, 0); err == nil {
		t.Error("check: nil for grants that overlapped")
	}
	for _, want := range []string{"worker 1  granted   token 7\n", "worker 1  released  token 7\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output %q lacks %q", out.String(), want)
		}
	}
}
