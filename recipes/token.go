package recipes

import "strconv"

// A Token is the fencing token of a grant: larger for every later exclusive
// grant of the same lock, also when its queue was removed and made again. Hand
// it to the resource with each write; a resource that remembers the largest
// token it has seen and refuses smaller ones is safe even from a holder that was
// stopped and acts late.
//
// Tokens of different locks say nothing about each other. Zero is no token.
type Token uint64

// String returns the token in decimal.
func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }
