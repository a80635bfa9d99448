package session

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A wire is one connection to one server, between the client library and the
// network. It sees whole frames, and mends what the client does not do:
//
//   - the handshake has a time limit, and ends with our credentials accepted:
//     see handshake.go;
//   - when something was sent, and when it was answered, is noted for the trust
//     window;
//   - a failed write shows as a lost connection, not as an error of its own;
//   - watches are set here, unknown to the client, and each fires when the
//     connection is lost, so that whoever waits looks again;
//   - sequential nodes are made by the request that answers with their stat, and
//     containers by the one for containers. (The client's own call for that reads
//     its answer while the connection may still be writing it.)
type wire struct {
	net.Conn
	life   *Life
	server string
	limit  time.Duration // for the handshake
	sentAt time.Time     // of the connect request
	in     *bufio.Reader

	out     []byte // frames that the client has yet to read
	greeted bool   // the handshake is over
	broken  error  // set when the connection is lost
	lost    chan struct{}

	mu        sync.Mutex // the client reads and writes on different goroutines
	asked     map[int32]watchKey
	armed     map[watchKey]struct{} // watches that this connection has
	creations map[int32]*creation

	// See ghost.go.
	closeOnce     sync.Once
	asksToClose   chan struct{} // closed when closeXid is set
	closeXid      int32
	answeredClose bool
}

const (
	opCreate       = 1
	opExists       = 3
	opGetData      = 4
	opGetChildren2 = 12
	opCreate2      = 15

	opCreateContainer = 19

	eventDeleted  = 2
	eventChildren = 4

	xidEvent = -1

	frameLimit = 64 << 20 // no server sends more
)

func newWire(l *Life, conn net.Conn, server string, limit time.Duration) *wire {
	w := &wire{
		Conn:      conn,
		life:      l,
		server:    server,
		limit:     limit,
		in:        bufio.NewReaderSize(conn, 4096),
		asked:     make(map[int32]watchKey),
		armed:     make(map[watchKey]struct{}),
		creations: make(map[int32]*creation),

		lost:        make(chan struct{}),
		asksToClose: make(chan struct{}),
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
	frame, written := w.noteRequest(frame)
	if _, err := w.Conn.Write(frame); err != nil {
		w.Conn.Close()
	}
	written()
	return len(frame), nil
}

// Read hands out whole frames one after the other, however little is asked for.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.out) == 0 {
		var frame []byte
		var err error
		switch {
		case w.broken != nil && w.life.Err() == nil:
			return 0, w.broken
		case w.broken != nil:
			if frame, err = w.ghost(); err != nil {
				return 0, err
			}
		case !w.greeted:
			if frame, err = w.handshake(); err == nil {
				w.greeted = true
			}
		default:
			if frame, err = w.readFrame(); err == nil {
				err = w.noteReply(frame[4:])
			}
		}
		if err != nil {
			w.Conn.Close()
			w.broken = err
			close(w.lost)
			w.dropWatches()
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

// noteRequest remembers when a request is sent and what it is about. It returns
// what to send in its place, and what to call when that was done.
func (w *wire) noteRequest(frame []byte) (send []byte, written func()) {
	send, written = frame, func() {}
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

	w.mu.Lock()
	defer w.mu.Unlock()
	switch op {
	case opGetData, opGetChildren2, opExists:
		key := watchKey{path: r.string()}
		switch op {
		case opGetChildren2:
			key.kind = watchChildren
		case opExists:
			key.kind = watchPresence
		}
		if r.err == nil && w.life.watches.wants(key) {
			send = bytes.Clone(frame) // the client's buffer is not ours to change
			send[len(send)-1] = 1
			w.asked[xid] = key
		}
	case opCloseSession:
		w.noteClose(xid)
	case opCreate:
		if binary.BigEndian.Uint32(frame[len(frame)-4:]) == zk.FlagContainer {
			send = bytes.Clone(frame)
			binary.BigEndian.PutUint32(send[8:], opCreateContainer)
			break
		}
		r.string() // path
		if c := w.life.creationOf(r.string()); r.err == nil && c != nil {
			if !w.life.s.noCreate2.Load() {
				send = bytes.Clone(frame)
				binary.BigEndian.PutUint32(send[8:], opCreate2)
				w.creations[xid] = c
			}
			written = c.written
		}
	}
	return
}

// noteReply takes note of a frame before the client sees it: what has arrived at
// the server, which watches there are, what they have to say. The client panics
// at a reply without a whole header, so that counts as a broken connection.
func (w *wire) noteReply(body []byte) error {
	r := reader{b: body}
	xid, _, code := r.int32(), r.int64(), r.int32()
	if r.err != nil {
		return fmt.Errorf("reply of %d bytes: %w", len(body), r.err)
	}
	if xid == xidEvent { // which answers nothing that we sent
		event, _, path := r.int32(), r.int32(), r.string()
		if r.err != nil {
			return fmt.Errorf("event: %w", r.err)
		}
		if event != eventChildren {
			w.fire(watchKey{path, watchData})
			w.fire(watchKey{path, watchPresence})
		}
		if event == eventChildren || event == eventDeleted {
			w.fire(watchKey{path, watchChildren})
		}
		return nil
	}
	w.life.mu.Lock()
	w.life.win.answered(xid, time.Now())
	w.life.mu.Unlock()

	w.mu.Lock()
	defer w.mu.Unlock()
	if key, ok := w.asked[xid]; ok {
		delete(w.asked, xid)
		if code == 0 || code == codeNoNode && key.kind == watchPresence {
			w.armed[key] = struct{}{}
		}
	}
	if c, ok := w.creations[xid]; ok {
		delete(w.creations, xid)
		switch code {
		case 0:
			r.string() // path
			c.answeredWith(r.stat())
		case codeUnimplemented:
			w.life.s.noCreate2.Store(true)
		}
	}
	return nil
}

func (w *wire) fire(key watchKey) {
	w.mu.Lock()
	delete(w.armed, key)
	w.mu.Unlock()
	w.life.watches.fire(key, true)
}

// dropWatches fires the watches that are lost with the connection.
func (w *wire) dropWatches() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.armed {
		w.life.watches.fire(key, false)
	}
	clear(w.armed)
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

// stat reads what the server says of a node; nil if it is cut short.
func (r *reader) stat() *zk.Stat {
	s := &zk.Stat{
		Czxid: r.int64(), Mzxid: r.int64(), Ctime: r.int64(), Mtime: r.int64(),
		Version: r.int32(), Cversion: r.int32(), Aversion: r.int32(),
		EphemeralOwner: r.int64(), DataLength: r.int32(), NumChildren: r.int32(), Pzxid: r.int64(),
	}
	if r.err != nil {
		return nil
	}
	return s
}

// string reads a string or a buffer, which may be none at all.
func (r *reader) string() string {
	n := r.int32()
	if n == -1 {
		return ""
	}
	return string(r.take(int(n)))
}

// A frameWriter puts them together.
type frameWriter struct{ b []byte }

func (f *frameWriter) int32(v int32)   { f.b = binary.BigEndian.AppendUint32(f.b, uint32(v)) }
func (f *frameWriter) int64(v int64)   { f.b = binary.BigEndian.AppendUint64(f.b, uint64(v)) }
func (f *frameWriter) string(s string) { f.int32(int32(len(s))); f.b = append(f.b, s...) }

// frame returns what was written with its length in front.
func (f *frameWriter) frame() []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(f.b))), f.b...)
}
