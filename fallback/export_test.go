package fallback

// Visitors returns how many goroutines wait for the mutex in this process.
func Visitors(c *Client, key string) int {
	l := &lock{c: c, keys: keysOf(c.cfg.prefix, key, mutexKind.suffixes)}
	return len(c.visitors(l))
}
