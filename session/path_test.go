package session

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestValidatePath(t *testing.T) {
	for _, path := range []string{
		"/a", "/a/b", "/locks/orders", "/a b", "/.a", "/a.", "/...", "/a..b", "/é", "/日本", "/a/\u00a0", "/zookeeperx",
		"/\U0001F512", "/\ufdd0", "/a\ue000"[:2],
	} {
		if err := ValidatePath(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, path := range []string{
		"", "a", "a/b", "/", "//", "/a/", "/a//b", "//a", "/.", "/..", "/./a", "/a/.", "/a/../b", "/a/..",
		"/zookeeper", "/zookeeper/quota", "/a\x00", "/a\x01", "/a\x1f", "/a\x7f", "/a\u0085", "/a\u009f",
		"/a\ue000", "/a\uf8ff", "/a\ufff0", "/a\uffff", "/a\xff", "/\xed\xa0\x80",
	} {
		if err := ValidatePath(path); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestParentOf(t *testing.T) {
	for path, parent := range map[string]string{"/a": "/", "/a/b": "/a", "/a/b/c-": "/a/b"} {
		if got := parentOf(path); got != parent {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func FuzzValidatePath(f *testing.F) {
	for _, s := range []string{"/a", "/a/b", "", "/", "/a//b", "/..", "/a\x00", "\xff", "/zookeeper/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if err := ValidatePath(path); err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%q: %v", path, err)
			}
			return
		}
		if !utf8.ValidString(path) || path[0] != '/' || strings.ContainsAny(path, "\x00\x7f") {
			t.Errorf("%q was let through", path)
		}
		for e := range strings.SplitSeq(path[1:], "/") {
			if e == "" || e == "." || e == ".." {
				t.Errorf("%q was let through", path)
			}
		}
		if err := ValidatePath(path + "/x"); err != nil {
			t.Errorf("a child of a valid path: %v", err)
		}
		if up := parentOf(path); up != "/" && ValidatePath(up) != nil {
			t.Errorf("the parent %q of a valid path: %v", up, ValidatePath(up))
		}
	})
}
