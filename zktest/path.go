package zktest

import (
	"strings"
	"unicode/utf8"
)

// split cuts a path into its parent and its last element. The parent of a
// top-level node is "/".
func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/", path[i+1:]
	}
	return path[:i], path[i+1:]
}

// validPath is the rule that the real server holds writes to; reads of a bad
// path merely find no node.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || !utf8.ValidString(path) {
		return false
	}
	for elem := range strings.SplitSeq(path[1:], "/") {
		if elem == "" || elem == "." || elem == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(path, forbidden)
}

// hasParent is the weaker rule that comes first where the parent is looked up:
// a path that breaks only validPath's may be told NoNode.
func hasParent(path string) bool {
	return strings.Contains(path, "/") && !strings.ContainsRune(path, 0)
}

// forbidden are control characters and what can't be displayed.
func forbidden(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f ||
		r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 // beyond 0xffff are pairs of surrogates
}

// isSpecial are the nodes that can't be deleted.
func isSpecial(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return true
	}
	return false
}
