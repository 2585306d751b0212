// Package protocol is what the wire-protocol page of @pilotoo/chat-protocol
// says, as data and as a judge: names, limits and versions, the shapes of
// messages, the catalogue of rules, and the validator of single messages. It is
// pure: no I/O, and no clock but the one that ends a pattern of a schema which
// takes too long.
//
// [Packet] and [Frame] judge framing, a [Validator] judges messages one by one,
// and package conversation what takes more than one message to see; all of them
// by the rules of one catalogue, which RULES.md shows. A message is read in one
// pass that allocates nothing when nothing is wrong.
//
// Every rule has a provenance. What the page states may be an error; what
// follows from the page names the sentence that it follows from; what the page
// leaves open and this project fills in is at most a warning.
package protocol
