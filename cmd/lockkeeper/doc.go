// Command lockkeeper.
package main
