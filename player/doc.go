// Package player stands in as a whole gateway: it keeps threads, runs and
// pending decisions, and serves synthetic or recorded runs to unmodified
// clients.
//
// A [Source] answers commands with scripts; the stage plays them, on one
// goroutine and one absolute schedule for all runs. Everything about a thread
// happens under its own lock, emitting included, so that a window that joins
// sees each envelope once: in its replay or live.
//
// With the same seed the same commands give the same bytes, ids included. What
// the page leaves open is decided once and said in the README: run:start joins
// the thread's room and makes the thread; a resumed segment is a run of its own;
// what has streamed is checkpointed when its segment ends.
package player
