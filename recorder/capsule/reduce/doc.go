// Package reduce makes the smallest recording that still shows a fault.
//
//	result, err := Frames(ctx, session, frames, Options{Rule: "sequence-gap"})
//
// It is delta debugging: parts are taken out, and what is left is tried, first
// whole connections, threads and runs, then constructs, then single messages,
// larger parts before smaller ones. What cannot be read without it stays: how a
// connection began, and how it ended.
//
// # What is promised
//
// The rule is broken in the result, and no other rule of severity error or
// warning is that was not broken before. No single construct and no single message
// can be taken out of it, unless the work was cut short, which is said. The same
// frames give the same result. What is kept is kept byte for byte, with two
// exceptions: of a polling body only the packets are left that are kept, and
// sequences are counted anew where envelopes were taken out, so that no gap is
// there that was not. Gaps that were there stay.
//
// # What is not
//
// It is not the smallest of all: two parts of which each needs the other are
// tried together only if they make one construct, one run, one thread or one
// connection. Envelopes within an answer to thread:messages stay with it, and so
// does a polling body with attachments. Texts are not shortened.
package reduce
