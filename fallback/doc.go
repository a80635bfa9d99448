// Package fallback has the locks of package recipes on Redis.
package fallback
