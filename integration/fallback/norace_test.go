//go:build !race

package fallback_test

const many = 10_000
