package link_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/integration/link"
)

// echo answers every line with itself and tells of each on the channel.
func echo(t *testing.T) (addr string, lines <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	seen := make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					line, err := r.ReadString('\n')
					if err != nil {
						seen <- err.Error()
						return
					}
					seen <- line
					io.WriteString(c, line)
				}
			}()
		}
	}()
	return l.Addr().String(), seen
}

type conn struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, l *link.Link) conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return conn{c, bufio.NewReader(c)}
}

func (c conn) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c, line); err != nil {
		t.Fatal(err)
	}
}

func (c conn) hear(t *testing.T, want string) {
	t.Helper()
	if got, err := c.r.ReadString('\n'); err != nil || got != want {
		t.Fatalf("heard %q, %v; want %q", got, err, want)
	}
}

// silence checks that nothing arrives for a little while: a link that leaks is
// caught most of the time, one that does not never fails.
func (c conn) silence(t *testing.T) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	defer c.SetReadDeadline(time.Time{})
	if b, err := c.r.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("came through a hole: %q, %v", b, err)
	}
}

func expect(t *testing.T, lines <-chan string, want string) {
	t.Helper()
	if got := <-lines; got != want {
		t.Fatalf("server got %q, want %q", got, want)
	}
}

func TestHoleHoldsBackAndHealDelivers(t *testing.T) {
	addr, lines := echo(t)
	l := link.New(t, addr)
	c := dial(t, l)
	c.say(t, "one\n")
	expect(t, lines, "one\n")
	c.hear(t, "one\n")

	l.Hole()
	c.say(t, "two\n")
	late := dial(t, l)
	late.say(t, "three\n")
	c.silence(t)
	late.silence(t)
	if len(lines) > 0 {
		t.Fatalf("server got %q", <-lines)
	}
	l.Heal()
	c.hear(t, "two\n")
	late.hear(t, "three\n")
}

func TestHoleDownCarriesRequests(t *testing.T) {
	addr, lines := echo(t)
	l := link.New(t, addr)
	c := dial(t, l)
	l.HoleDown()
	c.say(t, "one\n")
	expect(t, lines, "one\n")
	c.silence(t)
	l.Heal()
	c.hear(t, "one\n")
}

func TestHoleUpHoldsTheEndBack(t *testing.T) {
	addr, lines := echo(t)
	l := link.New(t, addr)
	c := dial(t, l)
	c.say(t, "one\n")
	expect(t, lines, "one\n")
	c.hear(t, "one\n")
	l.HoleUp()
	c.say(t, "two\n")
	c.Close()
	// the end can't have arrived before what was sent ahead of it
	dial(t, l).silence(t)
	if len(lines) > 0 {
		t.Fatalf("server got %q", <-lines)
	}
	l.Heal()
	expect(t, lines, "two\n")
}

func TestCutIsABlip(t *testing.T) {
	addr, lines := echo(t)
	l := link.New(t, addr)
	c := dial(t, l)
	c.say(t, "one\n")
	expect(t, lines, "one\n")
	c.hear(t, "one\n")
	l.Cut()
	if _, err := c.r.ReadByte(); err == nil {
		t.Fatal("connection lives")
	}
	if got := <-lines; got == "one\n" {
		t.Fatalf("server got %q", got)
	}
	c = dial(t, l)
	c.say(t, "two\n")
	c.hear(t, "two\n")
}

func TestRefuse(t *testing.T) {
	addr, lines := echo(t)
	l := link.New(t, addr)
	l.Refuse()
	if c, err := net.Dial("tcp", l.Addr()); err == nil { // it may be broken before or after Dial sees it made
		defer c.Close()
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Fatal("connection lives")
		}
	}
	if len(lines) > 0 {
		t.Fatalf("server got %q", <-lines)
	}
	l.Heal()
	c := dial(t, l)
	c.say(t, "one\n")
	c.hear(t, "one\n")
}

// A connection that hangs in a hole can still be cut.
func TestCutInAHole(t *testing.T) {
	addr, _ := echo(t)
	l := link.New(t, addr)
	c := dial(t, l)
	c.say(t, "one\n")
	c.hear(t, "one\n")
	l.Hole()
	c.say(t, "two\n")
	l.Cut()
	if _, err := c.r.ReadByte(); err == nil {
		t.Fatal("connection lives")
	}
}
