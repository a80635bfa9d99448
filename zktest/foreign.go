package zktest

import (
	"fmt"
	"slices"
)

// The methods of this file change the tree without a client, behind everyone's
// back. No permission is asked for; watches fire. Errors match a Code.

// direct runs one txn that no client has asked for.
func (s *Server) direct(what, path string, f func(*txn) Code) error {
	tx := s.begin(0, nil)
	tx.super = true
	code := f(tx)
	tx.end(code)
	if code != codeOK {
		return fmt.Errorf("zktest: %s %s: %w", what, path, code)
	}
	return nil
}

// Create makes a persistent node, and its parents where they are missing, open
// to the world. It fails with NodeExists if it is there.
func (s *Server) Create(path string, data []byte) (err error) {
	s.locked(func() { err = s.createAll(path, data, 0) })
	return err
}

// CreateEphemeral makes an ephemeral node for a session, and its parents where
// they are missing. It fails with SessionExpired if there is no such session.
func (s *Server) CreateEphemeral(path string, data []byte, owner int64) (err error) {
	s.locked(func() {
		if s.sessions[owner] == nil {
			err = fmt.Errorf("zktest: create %s for session %s: %w", path, hex(owner), SessionExpired)
			return
		}
		err = s.createAll(path, data, owner)
	})
	return err
}

func (s *Server) createAll(path string, data []byte, owner int64) error {
	if !validPath(path) {
		return fmt.Errorf("zktest: create %s: %w", path, BadArguments)
	}
	if parent, _ := split(path); s.tree.get(parent) == nil {
		if err := s.createAll(parent, []byte{}, 0); err != nil {
			return err
		}
	}
	return s.direct("create", path, func(tx *txn) Code {
		_, _, code := tx.create(creation{path: path, data: slices.Clone(data), acl: openACL, owner: owner})
		return code
	})
}

// Set writes a node's data.
func (s *Server) Set(path string, data []byte) (err error) {
	s.locked(func() {
		err = s.direct("set", path, func(tx *txn) Code {
			_, code := tx.setData(path, slices.Clone(data), -1)
			return code
		})
	})
	return err
}

// Delete removes a node that has no children.
func (s *Server) Delete(path string) (err error) {
	s.locked(func() { err = s.deleteOne(path) })
	return err
}

// DeleteAll removes a node with everything below it, the lowest first, each in
// a txn of its own.
func (s *Server) DeleteAll(path string) (err error) {
	s.locked(func() { err = s.deleteBelow(path) })
	return err
}

func (s *Server) deleteBelow(path string) error {
	if n := s.tree.get(path); n != nil && !isSpecial(path) {
		for _, name := range n.sortedChildren() {
			if err := s.deleteBelow(path + "/" + name); err != nil {
				return err
			}
		}
	}
	return s.deleteOne(path)
}

func (s *Server) deleteOne(path string) error {
	return s.direct("delete", path, func(tx *txn) Code { return tx.delete(path, -1) })
}
