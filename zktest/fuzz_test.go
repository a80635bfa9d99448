package zktest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
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
	seed(OpSetWatches2, int64(1), []string{"/p"}, []string{}, []string{}, []string{"/p"}, []string{"/", "x"})
	seed(OpMultiRead, int(OpGetData), false, -1, "/p", true, int(OpGetChildren), false, -1, "", true, -1, true, -1)
	seed(OpMultiRead, int(OpDelete), false, -1, "/p/e", -1, -1, true, -1)
	seed(OpAddWatch, "/p", 1)
	seed(OpCheckWatches, "x", 3)
	seed(OpRemoveWatches, "/p", 3)
	seed(OpGetEphemerals, "/p")
	seed(OpGetAllChildrenNumber, "/")
	seed(OpWhoAmI)
	seed(OpSASL, []byte("token"))
	seed(OpCheck, "/p", -1)
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
		s.locked(func() { checkWatches(t, s.watches) })
		if err := s.DeleteAll("/p"); err != nil { // what was set to watch hears of it
			t.Fatal(err)
		}

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

// checkWatches fails the test if the two sides of the watches contradict each
// other.
func checkWatches(t testing.TB, w watches) {
	t.Helper()
	recursives := map[*conn]int{}
	entries := 0
	for key, conns := range w.on {
		for c, mode := range conns {
			entries++
			if mode == recursive {
				recursives[c]++
			}
			if _, ok := w.of[c][key]; !ok {
				t.Errorf("%+v isn't known as its connection's", key)
			}
		}
	}
	if entries != w.entries() || !maps.Equal(recursives, w.recursive) {
		t.Errorf("%d watches by path, %d by connection; recursive: %v and %v", entries, w.entries(), recursives, w.recursive)
	}
}

// FuzzConnection: whatever bytes a client sends, from the handshake on, however
// they are cut, the server is done with them when the connection ends.
func FuzzConnection(f *testing.F) {
	hello := jute.NewFrame()
	hello.Fields(0, int64(0), 10_000, int64(0), make([]byte, 16), true)
	request := func(op Op, fields ...any) []byte {
		e := jute.NewFrame()
		e.Fields(1, int32(op))
		e.Fields(fields...)
		return e.Sealed()
	}
	for word := range words {
		f.Add([]byte(word), 1)
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, 3)
	f.Add(slices.Concat(hello.Sealed(), request(OpCreate, "/x", []byte{}, openACL, 1), request(OpAddWatch, "/", 1),
		request(OpDelete, "/x", -1), request(Op(77)), request(OpPing)), 7)
	f.Add(slices.Concat(hello.Sealed(), request(OpAuth, 0, "no", []byte{})), 50)
	f.Add(slices.Concat(hello.Sealed(), []byte{0x00, 0x0f, 0xff, 0xff, 1}, hello.Sealed()), 1000)
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		s, err := New(InMemory())
		if err != nil {
			t.Fatal(err)
		}
		nc, err := s.Dial(context.Background(), "tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, nc)
		for chunk := range slices.Chunk(data, max(piece, 1)) {
			if _, err := nc.Write(chunk); err != nil {
				break
			}
		}
		nc.Close()
		// All that it sent is carried out, or it was given up before.
		if err := s.WaitFor(context.Background(), func(v *View) bool { return len(v.s.conns) == 0 }); err != nil {
			t.Fatal(err)
		}
		checkTree(t, s.tree)
		if n := s.Watches(); n != 0 {
			t.Errorf("%d watches without a connection", n)
		}
		s.Close()
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
