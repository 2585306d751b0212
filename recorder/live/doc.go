// Package live reads a tape through the process that writes it, which has the
// file to itself. That process listens on a Unix socket beside the tape and
// answers the calls of a recorder.Reader over HTTP; a [Reader] finds out by itself
// whether to read the file or to ask, and goes with the tape from one to the
// other.
//
// The socket is TAPE.sock with mode 0600. Where that name is too long for a
// socket, it has a name made from the tape's in $XDG_RUNTIME_DIR, or in a folder
// of mode 0700 where temporary files are. Where there are no Unix sockets
// TAPE.sock is a file of mode 0600 with a loopback address and a token, and
// requests that name another host, or come from a web page, are refused.
//
// # The protocol, version 1
//
//	GET /v1/sessions
//	GET /v1/runs
//	GET /v1/threads
//	GET /v1/rows?session=1&run=ID&from=0&n=100
//	GET /v1/frames?from=1&n=100
//	GET /v1/findings?session=1&run=ID     without a query: all
//	GET /v1/follow?from=1                 goes on until the session ends
//	GET /v1/version
//
// An answer is JSON, an object a line: {"item": …} for each value, {"lost": …}
// for frames that cannot be read, and at last {"end": true} or {"error": …}. An
// answer without its last line was cut off. Other versions get 404 and a reason.
//
// A reader that stops reading holds up nobody: it reads the tape at its own
// pace, and nothing is kept for it.
package live
