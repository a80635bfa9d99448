package session

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// A wire is one connection to one server, between the client library and the
// network. It sees whole frames, and mends what the client does not do:
//
//   - the handshake has a time limit, and ends with our credentials accepted:
//     see handshake.go;
//   - when something was sent is noted for the trust window;
//   - a failed write shows as a lost connection, not as an error of its own;
//   - the answer to a question with a watch is held back while the connection is
//     new, since the client looks then which watches it has to set anew;
//   - when the connection is lost, each watch that was set on it fires, so that
//     whoever waits looks again, and the client has none to set anew on the next
//     connection. (Its own way of doing so reads the last zxid while another
//     goroutine writes it, and can miss events because of that.)
type wire struct {
	net.Conn
	life   *Life
	server string
	limit  time.Duration // for the handshake
	in     *bufio.Reader

	out     []byte    // frames that the client has yet to read
	greeted bool      // the handshake is over
	since   time.Time // when it was
	broken  error     // set when the connection is lost

	sentAt time.Time // when the connect request was sent

	mu    sync.Mutex // the client reads and writes on different goroutines
	asked map[int32]watchKey
	armed map[watchKey]struct{}
}

// A watchKey names a watch as the client keeps it.
type watchKey struct {
	path string
	kind int32 // event that fires it: eventData or eventChildren
}

// settle is how long the client gets, after a handshake, to find out that it has
// no watches to set anew: a few instructions on a goroutine that we can't wait for.
const settle = 5 * time.Millisecond

const (
	opExists       = 3
	opGetData      = 4
	opGetChildren  = 8
	opGetChildren2 = 12

	eventData     = 3
	eventChildren = 4

	xidEvent = -1

	frameLimit = 64 << 20 // no server sends more
)

func newWire(l *Life, conn net.Conn, server string, limit time.Duration) *wire {
	w := &wire{
		Conn:   conn,
		life:   l,
		server: server,
		limit:  limit,
		in:     bufio.NewReaderSize(conn, 4096),
		asked:  make(map[int32]watchKey),
		armed:  make(map[watchKey]struct{}),
	}
	l.mu.Lock()
	l.wire = w
	over := l.ended != nil
	l.mu.Unlock()
	if over {
		conn.Close()
	}
	return w
}

// Write sends one frame: the client never writes less or more. It reports
// success even if the connection is lost, since only the reading side can tell
// the client what that means for all requests under way.
func (w *wire) Write(frame []byte) (int, error) {
	w.noteRequest(frame)
	if _, err := w.Conn.Write(frame); err != nil {
		w.Conn.Close()
	}
	return len(frame), nil
}

// Read hands out whole frames one after the other, however little is asked for.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.out) == 0 {
		if w.broken != nil {
			return 0, w.broken
		}
		var frame []byte
		var err error
		if !w.greeted {
			frame, err = w.handshake()
			w.greeted, w.since = true, time.Now()
		} else if frame, err = w.readFrame(); err == nil {
			err = w.noteReply(frame[4:])
		}
		if err != nil {
			w.Conn.Close()
			w.broken = err
			w.out = w.farewellEvents()
			w.life.s.note(fmt.Errorf("%s: %w", w.server, err))
			continue
		}
		w.out = frame
	}
	n := copy(p, w.out)
	w.out = w.out[n:]
	return n, nil
}

// readFrame reads one frame with its length in front.
func (w *wire) readFrame() ([]byte, error) {
	head, err := w.in.Peek(4)
	if err != nil {
		return nil, err
	}
	size := int32(binary.BigEndian.Uint32(head))
	if size < 0 || size > frameLimit {
		return nil, fmt.Errorf("frame of %d bytes: not a ZooKeeper server, or not in its senses", size)
	}
	if int(size) <= w.in.Size()-4 {
		frame := make([]byte, 4+size)
		_, err := io.ReadFull(w.in, frame)
		return frame, err
	}
	// Trust the length only as far as bytes really come.
	frame := make([]byte, 0, w.in.Size())
	for want := 4 + int(size); len(frame) < want; {
		chunk := min(want-len(frame), 1<<20)
		frame = append(frame, make([]byte, chunk)...)
		if _, err := io.ReadFull(w.in, frame[len(frame)-chunk:]); err != nil {
			return nil, err
		}
	}
	return frame, nil
}

// noteRequest remembers when the request is sent, and whether it asks for a
// watch.
func (w *wire) noteRequest(frame []byte) {
	if !w.greeted {
		w.sentAt = time.Now()
		return
	}
	r := reader{b: frame}
	r.int32() // length
	xid, op := r.int32(), r.int32()
	w.life.mu.Lock()
	w.life.win.wrote(xid, time.Now())
	w.life.mu.Unlock()
	var kind int32
	switch op {
	case opExists, opGetData:
		kind = eventData
	case opGetChildren, opGetChildren2:
		kind = eventChildren
	default:
		return
	}
	path, watch := r.string(), r.bool()
	if r.err != nil || !watch {
		return
	}
	w.mu.Lock()
	w.asked[xid] = watchKey{path, kind}
	w.mu.Unlock()
}

// noteReply keeps track of what has arrived at the server, and of which watches
// the client has. The client panics at a reply without a whole header.
func (w *wire) noteReply(body []byte) error {
	r := reader{b: body}
	xid, _, code := r.int32(), r.int64(), r.int32()
	if r.err != nil {
		return fmt.Errorf("reply of %d bytes: %w", len(body), r.err)
	}
	if xid != xidEvent { // which answers nothing that we sent
		w.life.mu.Lock()
		w.life.win.answered(xid, time.Now())
		w.life.mu.Unlock()
	}
	w.mu.Lock()
	k, armed := w.asked[xid]
	w.mu.Unlock()
	if armed {
		time.Sleep(settle - time.Since(w.since))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if xid == xidEvent {
		event, _, path := r.int32(), r.int32(), r.string()
		if r.err != nil {
			return fmt.Errorf("event: %w", r.err)
		}
		if event != eventChildren {
			delete(w.armed, watchKey{path, eventData})
		}
		if event == eventChildren || event == 2 { // deleted: both kinds
			delete(w.armed, watchKey{path, eventChildren})
		}
		return nil
	}
	if armed {
		delete(w.asked, xid)
		if code == 0 {
			w.armed[k] = struct{}{}
		}
	}
	return nil
}

// farewellEvents returns an event for each watch that is lost with the connection.
func (w *wire) farewellEvents() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []byte
	for k := range w.armed {
		var f frameWriter
		f.int32(xidEvent)
		f.int64(-1)
		f.int32(0)
		f.int32(k.kind)
		f.int32(0) // disconnected
		f.string(k.path)
		out = append(out, f.frame()...)
	}
	clear(w.armed)
	return out
}

// A reader takes the records of the protocol apart. After an error it returns
// zeros.
type reader struct {
	b   []byte
	err error
}

var errShort = errors.New("record is shorter than it should be")

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b) {
		r.err = errShort
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) bool() bool {
	b := r.take(1)
	return b != nil && b[0] != 0
}

func (r *reader) string() string { return string(r.take(int(r.int32()))) }

// A frameWriter puts them together.
type frameWriter struct{ b []byte }

func (f *frameWriter) int32(v int32)   { f.b = binary.BigEndian.AppendUint32(f.b, uint32(v)) }
func (f *frameWriter) int64(v int64)   { f.b = binary.BigEndian.AppendUint64(f.b, uint64(v)) }
func (f *frameWriter) string(s string) { f.int32(int32(len(s))); f.b = append(f.b, s...) }

// frame returns what was written with its length in front.
func (f *frameWriter) frame() []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(f.b))), f.b...)
}
