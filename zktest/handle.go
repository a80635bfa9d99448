package zktest

import (
	"slices"

	"github.com/lockkeeper/lockkeeper/internal/jute"
)

// handler carries out one kind of request. It is called with the server
// locked, reads the fields from d and writes the answer's to e; on an error
// code nothing of the latter is sent.
type handler struct {
	kind kind
	run  func(c *conn, d *jute.Decoder, e *jute.Encoder) Code
}

// kind says through which hands a request goes on the real server.
type kind int

const (
	local  kind = iota // answered by whatever server the client is connected to
	quorum             // goes to the leader: writes and sync
)

// handlers is the one place that knows what this server can do.
var handlers map[Op]handler

func init() {
	handlers = map[Op]handler{
		OpPing:                 {local, (*conn).ping},
		OpExists:               {local, (*conn).exists},
		OpGetData:              {local, (*conn).getData},
		OpGetACL:               {local, (*conn).getACL},
		OpGetChildren:          {local, (*conn).getChildren},
		OpGetChildren2:         {local, (*conn).getChildren2},
		OpMultiRead:            {local, (*conn).multiRead},
		OpSetWatches:           {local, (*conn).setWatches},
		OpSetWatches2:          {local, (*conn).setWatches2},
		OpAddWatch:             {local, (*conn).addWatch},
		OpCheckWatches:         {local, (*conn).checkWatches},
		OpRemoveWatches:        {local, (*conn).removeWatches},
		OpGetEphemerals:        {local, (*conn).getEphemerals},
		OpGetAllChildrenNumber: {local, (*conn).getAllChildrenNumber},
		OpWhoAmI:               {local, (*conn).whoAmI},
		OpAuth:                 {local, (*conn).auth},
		OpSASL:                 {local, (*conn).sasl},
		OpSync:                 {quorum, (*conn).sync},
		OpCreate:               {quorum, writer(OpCreate)},
		OpCreate2:              {quorum, writer(OpCreate2)},
		OpCreateContainer:      {quorum, writer(OpCreateContainer)},
		OpCreateTTL:            {quorum, writer(OpCreateTTL)},
		OpDelete:               {quorum, writer(OpDelete)},
		OpSetData:              {quorum, writer(OpSetData)},
		OpSetACL:               {quorum, writer(OpSetACL)},
		OpMulti:                {quorum, (*conn).multi},
		OpCheck:                {quorum, writer(OpCheck)},
		opDeleteContainer:      {quorum, refused(BadArguments)},
		OpReconfig:             {quorum, refused(ReconfigDisabled)},
		OpCloseSession:         {quorum, (*conn).closeSession},
	}
}

func (s *Server) handlerOf(op Op) (handler, bool) {
	if s.opts.noContainers && (op == OpCreateContainer || op == OpCreateTTL) {
		return handler{}, false
	}
	h, ok := handlers[op]
	return h, ok
}

// handle carries out one request. It reports whether to read on.
func (c *conn) handle(frame []byte) bool {
	d := &jute.Decoder{Buf: frame}
	xid, op := d.Int32(), Op(d.Int32())
	if d.Err != nil {
		return false
	}
	s := c.s
	s.mu.Lock()
	if c.detached || c.hole.covers(ToServer) {
		s.mu.Unlock()
		return true
	}
	s.tally(c.sess.id, func(n *Counts) { n.BytesIn += int64(len(frame) + 4) })
	c.received++
	c.lastOp, c.lastXid = op, xid
	verdict := s.arrive(Request{Session: c.sess.id, Op: op, Path: pathOf(op, d.Buf), Xid: xid})
	s.mu.Unlock()
	if !c.obey(verdict) {
		return true
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.stirred()
	if c.detached || c.hole.covers(ToServer) {
		return true
	}
	if c.cutOff == nil {
		s.touch(c.sess)
	}
	h, known := s.handlerOf(op)
	if c.waitsForLeader(op, h) {
		return true
	}
	body := &jute.Encoder{}
	code := verdict.fail
	switch {
	case code != codeOK:
	case !known:
		code = Unimplemented
	default:
		if h.kind == quorum {
			s.catchUp(c.sess) // what is committed was committed after all before it
		}
		code = h.run(c, d, body)
	}
	if (op == OpAuth || op == OpSASL) && code == MarshallingError {
		return false
	}
	c.answer(op, xid, code, body.Buf, verdict.loseReply)
	if !known {
		c.hangUp()
	}
	return true
}

// answer queues the reply to a request, and ends the connection where that
// belongs to it.
func (c *conn) answer(op Op, xid int32, code Code, body []byte, lose bool) {
	if lose {
		c.abortAfter()
		return
	}
	if op == OpCheck && code == codeOK {
		return
	}
	zxid := c.view().zxid
	switch op {
	case OpAuth, OpSASL:
		zxid = 0
	case OpPing:
		xid = xidPing
	}
	if code == Unimplemented {
		zxid = -1
	}
	e := newReply(xid, zxid, code)
	if code == codeOK || op == OpMultiRead {
		e.Buf = append(e.Buf, body...)
	}
	c.push(outgoing{frame: e.Sealed()})
	if op == OpCloseSession && code == codeOK || op == OpAuth && code != codeOK {
		c.hangUp()
	}
}

func (c *conn) ping(*jute.Decoder, *jute.Encoder) Code { return codeOK }

func (c *conn) sync(d *jute.Decoder, e *jute.Encoder) Code {
	path := d.Text()
	if d.Err != nil {
		return MarshallingError
	}
	e.Text(path)
	return codeOK
}

func (c *conn) auth(d *jute.Decoder, _ *jute.Encoder) Code {
	_, scheme, credentials := d.Int32(), d.Text(), d.Bytes()
	if d.Err != nil {
		return MarshallingError
	}
	id, ok := authenticate(scheme, credentials, c.ids[0].id)
	if !ok {
		return AuthFailed
	}
	if !slices.Contains(c.ids, id) {
		c.ids = append(c.ids, id)
	}
	return codeOK
}

// refused makes the handler of a write that always fails: reconfiguration is
// off, as it is by default, and only the server may delete as a server.
func refused(code Code) func(*conn, *jute.Decoder, *jute.Encoder) Code {
	return func(c *conn, _ *jute.Decoder, _ *jute.Encoder) Code {
		c.s.begin(c.sess.id, c.ids).end(code)
		return code
	}
}

// sasl answers as a server does that was not set up for it.
func (c *conn) sasl(d *jute.Decoder, e *jute.Encoder) Code {
	d.Bytes()
	if d.Err != nil {
		return MarshallingError
	}
	e.Bytes(nil)
	return codeOK
}

func (c *conn) closeSession(*jute.Decoder, *jute.Encoder) Code {
	c.s.endSession(c.sess)
	return codeOK
}

// pathOf finds the path of a request that begins with one.
func pathOf(op Op, body []byte) string {
	switch op {
	case OpPing, OpMulti, OpMultiRead, OpAuth, OpSASL, OpSetWatches, OpSetWatches2, OpCloseSession, OpWhoAmI:
		return ""
	}
	return (&jute.Decoder{Buf: body}).Text()
}
