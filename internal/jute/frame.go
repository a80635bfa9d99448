// Package jute reads and writes the frames and records of ZooKeeper's protocol.
package jute

import (
	"encoding/binary"
	"errors"
	"io"
)

// MaxFrame is the longest frame that a server takes by default
// (jute.maxbuffer).
const MaxFrame = 0xfffff

// ErrFrameLength is returned for a frame that can't be one.
var ErrFrameLength = errors.New("jute: frame length out of range")

// ReadFrame reads one length-prefixed frame. It allocates MaxFrame bytes at
// the most, whatever the prefix says.
func ReadFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	return ReadBody(r, head)
}

// ReadBody reads what follows a length prefix that was read already.
func ReadBody(r io.Reader, head [4]byte) ([]byte, error) {
	n := int32(binary.BigEndian.Uint32(head[:]))
	if n < 0 || n > MaxFrame {
		return nil, ErrFrameLength
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}
