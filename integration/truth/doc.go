// Package truth compares zktest with a real ZooKeeper. A script is a list of
// requests by several clients. It is played to both servers, and what is written
// down about it (results, stats, error codes, zxids, events and their order)
// must be the same, but for session ids and times.
//
// The model is 3.8: a server of another version is not compared.
package truth
