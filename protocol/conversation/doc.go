// Package conversation holds the state of a session's connections, threads and
// runs. Fed with the frames that passed, in the order of their positions, it
// says which messages they hold, to which runs they belong, which rules were
// broken, and what a correct client would show.
//
// It is pure: no clock, no I/O. The same frames give the same results, live and
// from a tape.
//
// [State] judges what takes more than one message to see; package protocol
// judges each message by itself, and State puts both kinds of findings into one
// stream. [Transcript] folds a thread's messages into what a reader sees.
//
// A false alarm is worse than a miss. Where the evidence is not there, since a
// run was joined in its middle or a window spoke past this tool, a rule is
// skipped and [State.Skipped] says so. A finding never stops the judging: the
// state goes back to something sensible and goes on. All memory is bounded; what
// is forgotten turns rules into skipped ones and never into findings.
package conversation
