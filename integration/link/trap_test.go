package link_test

import (
	"testing"

	"github.com/lockkeeper/lockkeeper/integration/link"
)

func TestLoseAnswer(t *testing.T) {
	addr, lines := echo(t)
	l := link.New(t, addr)
	trap := l.LoseAnswer(link.Containing("TWO"))
	c := dial(t, l)
	c.say(t, "one\n")
	expect(t, lines, "one\n")
	c.hear(t, "one\n")
	c.say(t, "two\n")
	expect(t, lines, "two\n")
	<-trap.Sprung()
	if b, err := c.r.ReadByte(); err == nil {
		t.Fatalf("answered: %q", b)
	}
	<-lines // the end of the first connection
	c = dial(t, l)
	c.say(t, "two\n") // a trap catches once
	expect(t, lines, "two\n")
	c.hear(t, "two\n")
}

func TestHoldAnswer(t *testing.T) {
	addr, lines := echo(t)
	l := link.New(t, addr)
	trap := l.HoldAnswer(link.Containing("one"))
	c := dial(t, l)
	c.say(t, "one\n")
	expect(t, lines, "one\n")
	<-trap.Sprung()
	c.silence(t)
	other := dial(t, l) // it holds one connection only
	other.say(t, "one\n")
	expect(t, lines, "one\n")
	other.hear(t, "one\n")
	trap.Release()
	c.hear(t, "one\n")
}

func TestHoldRequest(t *testing.T) {
	addr, lines := echo(t)
	l := link.New(t, addr)
	l.HoldRequest(link.Containing("never sent"))
	trap := l.HoldRequest(link.Containing("one"))
	c := dial(t, l)
	c.say(t, "one\n")
	<-trap.Sprung()
	c.Close() // which takes nothing back
	dial(t, l).silence(t)
	if len(lines) > 0 {
		t.Fatalf("server got %q", <-lines)
	}
	l.Heal()
	expect(t, lines, "one\n")
}

// A trap that was released before anything came catches nothing, nor does one
// whose request was let go before the answer came.
func TestReleasedTrap(t *testing.T) {
	addr, lines := echo(t)
	l := link.New(t, addr)
	l.LoseAnswer(link.Containing("one")).Release()
	c := dial(t, l)
	c.say(t, "one\n")
	expect(t, lines, "one\n")
	c.hear(t, "one\n")
}

func TestRedirect(t *testing.T) {
	first, old := echo(t)
	second, lines := echo(t)
	l := link.New(t, first)
	c := dial(t, l)
	c.say(t, "one\n")
	expect(t, old, "one\n")
	c.hear(t, "one\n")
	l.Redirect(second)
	if _, err := c.r.ReadByte(); err == nil {
		t.Fatal("connection lives")
	}
	c = dial(t, l)
	c.say(t, "two\n")
	expect(t, lines, "two\n")
	c.hear(t, "two\n")
}
