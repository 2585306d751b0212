// Package conversation holds the state of a session's connections, threads and
// runs. Fed with the frames that passed, in the order of their positions, it
// says which messages they hold, to which runs they belong, which rules were
// broken, and what a correct client would show.
//
// It is pure: no clock, no I/O. The same frames give the same results, live and
// from a tape.
package conversation
