package truth

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/lockkeeper/lockkeeper/internal/jute"
	"github.com/lockkeeper/lockkeeper/internal/rawzk"
	"github.com/lockkeeper/lockkeeper/zktest"
)

// handshakes compares what becomes of the first frame of a connection.
func (s servers) handshakes(t *testing.T) {
	hello := func(protocol int32, zxid int64, ms int32, id int64, password []byte, more ...any) []byte {
		e := jute.NewFrame()
		e.Fields(protocol, zxid, ms, id, password)
		e.Fields(more...)
		return e.Sealed()
	}
	password := make([]byte, 16)
	for name, first := range map[string][]byte{
		"a new session":            hello(0, 0, 5000, 0, password),
		"with a read-only byte":    hello(0, 0, 5000, 0, password, false),
		"for a read-only server":   hello(0, 0, 5000, 0, password, true),
		"with more behind it":      hello(0, 0, 5000, 0, password, true, int64(7)),
		"another protocol":         hello(9, 0, 5000, 0, password),
		"no password":              hello(0, 0, 5000, 0, nil),
		"an empty password":        hello(0, 0, 5000, 0, []byte{}),
		"a long password":          hello(0, 0, 5000, 0, make([]byte, 99)),
		"no timeout":               hello(0, 0, 0, 0, password),
		"a negative timeout":       hello(0, 0, -5, 0, password),
		"a short timeout":          hello(0, 0, 1, 0, password),
		"a long timeout":           hello(0, 0, 1<<30, 0, password),
		"a session that isn't":     hello(0, 0, 5000, 12345, password),
		"a negative session":       hello(0, 0, 5000, -1, password),
		"from the future":          hello(0, 1<<60, 5000, 0, password),
		"from before all time":     hello(0, -5, 5000, 0, password),
		"too short":                {0, 0, 0, 4, 0, 0, 0, 0},
		"empty":                    {0, 0, 0, 0},
		"negative":                 {0xff, 0xff, 0xff, 0xff},
		"huge":                     {0x7f, 0xff, 0xff, 0xff},
		"a lying password":         hello(0, 0, 5000, 0, nil)[:24],
		"a word that nobody knows": []byte("nope"),
		"half a frame":             {0, 0, 0, 44, 0},
	} {
		t.Run(name, func(t *testing.T) {
			want, got := answerTo(t, s.real, first), answerTo(t, s.ours, first)
			if want != got {
				t.Errorf("they disagree:\n  real: %s\nzktest: %s", want, got)
			}
		})
	}
}

// answerTo sends the bytes, and then no more, and says what comes of it.
func answerTo(t *testing.T, addr string, first []byte) string {
	t.Helper()
	nc, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	nc.Write(first)
	if n := int(int32(binary.BigEndian.Uint32(first))); n > len(first)-4 && n <= jute.MaxFrame {
		nc.(*net.TCPConn).CloseWrite() // there won't be more
	}
	frame, err := jute.ReadFrame(nc)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Fatalf("%s: no answer and no end", addr)
	}
	if err != nil {
		return "closed"
	}
	d := &jute.Decoder{Buf: frame}
	answer := fmt.Sprintf("protocol %d, timeout %d", d.Int32(), d.Int32())
	c := rawzk.New(nc)
	c.ID, c.Password = d.Int64(), d.Bytes()
	answer += fmt.Sprintf(", session %v, password of %d bytes, %d bytes more", c.ID != 0, len(c.Password), len(d.Buf))
	if c.ID == 0 {
		if _, err := io.ReadAll(nc); err == nil {
			answer += ", closed"
		}
		return answer
	}
	a, err := c.Call(int32(zktest.OpCloseSession))
	if err != nil {
		t.Fatal(err)
	}
	return answer + fmt.Sprintf(", closing: %d", a.Code)
}
