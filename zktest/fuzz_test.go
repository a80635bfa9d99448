package zktest

import (
	"bytes"
	"io"
	"testing"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

// FuzzRequest: whatever a client sends after its handshake, the server stays
// whole: no panic, no answer without a request, a tree that agrees with itself.
func FuzzRequest(f *testing.F) {
	seed := func(op Op, fields ...any) {
		e := &jute.Encoder{}
		e.Fields(fields...)
		f.Add(int32(op), e.Buf)
	}
	seed(OpPing)
	seed(OpCreate, "/p/x", []byte("data"), openACL, 0)
	seed(OpCreate2, "/p/x-", []byte(nil), []jute.ACL{jute.Entry(31, "auth", "")}, 3)
	seed(OpCreateTTL, "/p/t", []byte{}, openACL, 6, int64(1000))
	seed(OpDelete, "/p/e", -1)
	seed(OpDelete, "/", -1)
	seed(OpSetData, "/p", []byte("x"), 0)
	seed(OpSetACL, "/p", []jute.ACL{jute.Entry(1, "ip", "127.0.0.0/8"), jute.Entry(31, "digest", "a:b")}, -1)
	seed(OpGetChildren2, "/p", true)
	seed(OpGetData, "", true)
	seed(OpSetWatches, int64(1), []string{"/p", "/none"}, []string{"/p"}, []string{"/p", ""})
	seed(OpAuth, 0, "digest", []byte("u:p"))
	seed(OpMulti, int(OpCreate), false, -1, "/p/m", []byte{}, openACL, 1, int(OpDelete), false, -1, "/p/e", -1, int(OpCheck), false, -1, "/no", 1, -1, true, -1)
	seed(OpMulti, -1, true, -1)
	seed(OpCloseSession)
	seed(OpConnect, 0)
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		s, err := New(InMemory())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		nc, _ := newPipe("", "")
		c := &conn{s: s, nc: nc, gone: make(chan struct{}), wake: make(chan struct{}, 1), ids: []identity{{"ip", "127.0.0.1"}}}
		s.locked(func() {
			s.conns[c] = struct{}{}
			c.sess = s.openSession(7, s.opts.maxTimeout)
			c.sess.conn = c
		})
		if err := s.CreateEphemeral("/p/e", nil, 7); err != nil {
			t.Fatal(err)
		}
		e := &jute.Encoder{}
		e.Int32(5)
		e.Int32(op)
		c.handle(append(e.Buf, body...))

		checkTree(t, s.tree)
		replies := 0
		for _, out := range c.queue {
			if out.end != goOn {
				continue
			}
			frame, err := jute.ReadFrame(bytes.NewReader(out.frame))
			if err != nil && err != io.EOF {
				t.Fatalf("answer that is no frame: %v", err)
			}
			if d := (&jute.Decoder{Buf: frame}); d.Int32() != xidEvent {
				replies++
			}
		}
		if replies > 1 {
			t.Errorf("%d answers to one request", replies)
		}
	})
}

// FuzzHandshake: whatever the first frame is, it is refused or it is a session.
func FuzzHandshake(f *testing.F) {
	f.Add([]byte{})
	e := &jute.Encoder{}
	e.Fields(0, int64(0), 10_000, int64(0), make([]byte, 16), true)
	f.Add(e.Buf)
	f.Fuzz(func(t *testing.T, data []byte) {
		req, err := parseConnect(data)
		if err == nil && len(data) < 24 {
			t.Errorf("%d bytes became %+v", len(data), req)
		}
	})
}
