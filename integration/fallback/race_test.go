//go:build race

package fallback_test

// The race detector makes a client several times slower, and looks no closer for
// ten thousand times the same.
const many = 2_000
