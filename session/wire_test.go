package session

import (
	"bytes"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"
	"time"
)

// A stub is a connection of which only reading and closing matter.
type stub struct {
	net.Conn
	io.Reader
	wrote  bytes.Buffer
	closed bool
}

func (s *stub) Read(p []byte) (int, error)       { return s.Reader.Read(p) }
func (s *stub) Write(p []byte) (int, error)      { return s.wrote.Write(p) }
func (s *stub) Close() error                     { s.closed = true; return nil }
func (s *stub) SetReadDeadline(time.Time) error  { return nil }
func (s *stub) SetWriteDeadline(time.Time) error { return nil }

// newStub returns a wire that reads from r, past its handshake if greeted.
func newStub(r io.Reader, greeted bool) (*wire, *stub) {
	s := &Session{cfg: Config{Logger: slog.New(slog.DiscardHandler)}}
	conn := &stub{Reader: r}
	w := newWire(newLife(s), conn, "stub", time.Second)
	w.greeted = greeted
	w.life.win.open(time.Now(), 10*time.Second)
	return w, conn
}

func reply(xid int32, code int32, rest ...byte) []byte {
	var f frameWriter
	f.int32(xid)
	f.int64(1)
	f.int32(code)
	f.b = append(f.b, rest...)
	return f.frame()
}

func watchEvent(kind int32, path string) []byte {
	var f frameWriter
	f.int32(kind)
	f.int32(0)
	f.string(path)
	return reply(xidEvent, 0, f.b...)
}

func request(xid, op int32, path string, watch bool) []byte {
	var f frameWriter
	f.int32(xid)
	f.int32(op)
	f.string(path)
	f.b = append(f.b, map[bool]byte{true: 1}[watch])
	return f.frame()
}

// Frames come out as they went in, however the network cuts them up and however
// little is asked for.
func TestFramesPassUnchanged(t *testing.T) {
	var sent []byte
	for _, size := range []int{0, 1, 100, 4071, 4072, 4073, 4096, 5000, 1 << 20, 3<<20 + 1} {
		sent = append(sent, reply(7, 0, bytes.Repeat([]byte{byte(size)}, size)...)...)
	}
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "half": iotest.HalfReader, "late error": iotest.DataErrReader,
	} {
		w, _ := newStub(cut(bytes.NewReader(sent)), true)
		got, err := io.ReadAll(w)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(sent), err)
		}
	}
	w, _ := newStub(iotest.OneByteReader(bytes.NewReader(sent[:5000])), true)
	if got, _ := io.ReadAll(iotest.OneByteReader(w)); !bytes.HasPrefix(sent, got) || len(got) < 4000 {
		t.Errorf("byte by byte: %d bytes", len(got))
	}
}

// The client must never see a part of a frame, nor one that is too short for
// what it takes for granted.
func TestFramesThatAreBroken(t *testing.T) {
	good := reply(7, 0)
	for name, bad := range map[string][]byte{
		"cut in the length": {0, 0}, "cut in the middle": good[:10], "negative": {0xff, 0xff, 0xff, 0xff},
		"huge": {0x7f, 0xff, 0xff, 0xff, 1, 2, 3}, "empty": {0, 0, 0, 0}, "short": append([]byte{0, 0, 0, 15}, good[4:]...),
		"huge and cut": append([]byte{0x03, 0xff, 0xff, 0xff}, make([]byte, 5000)...),
	} {
		w, conn := newStub(bytes.NewReader(slices.Concat(good, bad, good)), true)
		if name == "cut in the length" || name == "cut in the middle" || name == "huge and cut" {
			w, conn = newStub(bytes.NewReader(slices.Concat(good, bad)), true)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := io.ReadAll(w)
		runtime.ReadMemStats(&after)
		if !bytes.Equal(got, good) || !conn.closed || err == nil && name != "cut in the length" && name != "cut in the middle" && name != "huge and cut" {
			t.Errorf("%s: %x, %v, closed: %v", name, got, err, conn.closed)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}

// When the connection is lost every watch fires that was set on it, once, and
// none that wasn't. The client hears nothing of it, and asks for none itself.
func TestWatchesFireWhenTheConnectionIsLost(t *testing.T) {
	in := slices.Concat(
		reply(1, 0), reply(2, 0), reply(3, -101), reply(4, 0), reply(6, 0), reply(7, 0),
		watchEvent(2, "/deleted"), watchEvent(4, "/list"), watchEvent(3, "/nobody asked"),
	)
	w, conn := newStub(bytes.NewReader(in), true)
	armed := make(map[watchKey]*armament)
	for _, k := range []watchKey{
		{"/kept", watchData}, {"/deleted", watchData}, {"/missing", watchData},
		{"/unanswered", watchData}, {"/list", watchChildren}, {"/deleted", watchChildren},
	} {
		armed[k], _ = w.life.watches.arming(k)
	}
	for _, r := range [][]byte{
		request(1, opGetData, "/kept", false), request(2, opGetData, "/deleted", false),
		request(3, opGetData, "/missing", false), request(4, opGetData, "/unwatched", false), request(5, opGetData, "/unanswered", false),
		request(6, opGetChildren2, "/list", false), request(7, opGetChildren2, "/deleted", false),
		{0, 0, 0, 2, 0, 0}, // not a request
	} {
		if n, err := w.Write(r); n != len(r) || err != nil {
			t.Fatal(n, err)
		}
	}
	if !bytes.Contains(conn.wrote.Bytes(), request(1, opGetData, "/kept", true)) || !bytes.Contains(conn.wrote.Bytes(), request(4, opGetData, "/unwatched", false)) {
		t.Errorf("sent %q", conn.wrote.Bytes())
	}
	got, err := io.ReadAll(w)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, in) {
		t.Errorf("the client got %q", got)
	}
	for k, a := range armed {
		if want := k.path != "/missing" && k.path != "/unanswered"; isClosed(a.fired) != want {
			t.Errorf("%v fired: %v", k, !want)
		}
	}
}

// A write that fails is no error of its own.
func TestWriteFails(t *testing.T) {
	client, server := net.Pipe()
	server.Close()
	w, _ := newStub(client, true)
	w.Conn = client
	frame := request(1, opGetData, "/a", true)
	if n, err := w.Write(frame); n != len(frame) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := w.Read(make([]byte, 4)); n != 0 || err == nil {
		t.Errorf("read %d, %v", n, err)
	}
}

// Whatever a server sends, nothing panics, and what the client gets are whole
// frames of which none is too short.
func FuzzFrames(f *testing.F) {
	var hello frameWriter
	hello.int32(0)
	hello.int32(10_000)
	hello.int64(42)
	hello.string(string(make([]byte, 16)))
	hello.b = append(hello.b, 0)
	f.Add(slices.Concat(hello.frame(), reply(1, 0), watchEvent(3, "/a")))
	f.Add(slices.Concat(hello.frame(), []byte{0, 0, 0, 0}))
	welcome := slices.Concat(hello.frame(), reply(-4, 0))
	f.Add(slices.Concat(welcome, reply(1, 0), watchEvent(2, "/a"), reply(-2, 0)))
	var made frameWriter
	made.string("/n-0000000001")
	f.Add(slices.Concat(welcome, reply(3, 0, append(made.b, make([]byte, 68)...)...)))
	f.Add(slices.Concat(welcome, reply(3, 0, made.b...), reply(4, codeUnimplemented)))
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff})
	f.Add(reply(-4, -115))
	f.Fuzz(func(t *testing.T, in []byte) {
		w, _ := newStub(bytes.NewReader(in), false)
		w.life.s.cfg.Auth = []Auth{{"digest", "u:p"}}
		w.Write(make([]byte, 49))
		w.asked[1] = watchKey{"/a", watchData}
		w.creations[3], w.creations[4] = &creation{}, &creation{}
		w.noteClose(2) // which a ghost answers
		out, _ := io.ReadAll(w)
		for first := true; len(out) > 0; first = false {
			size := int(binary.BigEndian.Uint32(out))
			if size > len(out)-4 || !first && size < 16 {
				t.Fatalf("a frame of %d bytes, %d are there", size, len(out)-4)
			}
			out = out[4+size:]
		}
	})
}
