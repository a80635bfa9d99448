package zktest

import "github.com/lockkeeper/lockkeeper/internal/jute"

// The modes of a creation, by the number on the wire.
const (
	modePersistent int32 = iota
	modeEphemeral
	modeSequential
	modeEphemeralSequential
	modeContainer
	modeTTL
	modeSequentialTTL
)

type createRequest struct {
	creation
	mode int32
	ttl  int64 // ms; -1 if the request has none
}

func readCreate(op Op, d *jute.Decoder) createRequest {
	r := createRequest{creation: creation{path: d.Text(), data: d.Bytes(), acl: d.ACLs()}}
	r.mode, r.ttl = d.Int32(), -1
	if op == OpCreateTTL {
		r.ttl = d.Int64()
	}
	return r
}

func (r createRequest) hasTTL() bool { return r.mode == modeTTL || r.mode == modeSequentialTTL }

// step makes the change that op does with the request.
func (r createRequest) step(op Op) step {
	bad := r.mode < modePersistent || r.mode > modeSequentialTTL ||
		r.hasTTL() && (r.ttl <= 0 || r.ttl > maxTTL) ||
		op == OpCreateTTL && !r.hasTTL() // alone, this one brings a real 3.8.0 down
	c := r.creation
	c.sequential = r.mode == modeSequential || r.mode == modeEphemeralSequential || r.mode == modeSequentialTTL

	return func(tx *txn, e *jute.Encoder) Code {
		if bad {
			return BadArguments
		}
		switch {
		case op == OpCreateContainer:
			c.owner = ownerContainer // whatever the mode
		case r.hasTTL():
			c.owner = ownerTTL | r.ttl
		case r.mode == modeEphemeral || r.mode == modeEphemeralSequential:
			c.owner = tx.session
		}
		path, n, code := tx.create(c)
		if code != codeOK {
			return code
		}
		e.Text(path)
		if op != OpCreate {
			e.Stat(n.stat())
		}
		return codeOK
	}
}

// inMulti returns the op that the real server makes of a creation inside a
// multi: there the mode decides, not the op. It is false for a node with a time
// to live whose request has no field for one.
func (r createRequest) inMulti(op Op) (Op, bool) {
	switch {
	case r.mode == modeContainer:
		return OpCreateContainer, true
	case r.hasTTL():
		return OpCreateTTL, op == OpCreateTTL
	}
	return OpCreate, true
}
