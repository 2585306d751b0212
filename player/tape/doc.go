// Package tape is the player's source of recorded runs: it reads a tape, and
// answers the commands of live clients with what the recorded gateway sent.
//
// # What replay promises
//
// Envelopes go out byte for byte, their order, numbers and faults included, save
// that each recorded id is replaced by a live one, everywhere, through one map a
// live thread. The ids that callers choose, a thread's and a message's, stand for
// the recorded ones. Times are those of the recording, counted from the command
// that led there; what a person took to answer, cancel, detach or come back is
// never slept: the run stands still until the command comes. A client that makes
// the recorded moves gets the recorded conversation. The tests record every
// built-in scenario, play the recording, and compare.
//
// A client may do otherwise. A run:cancel or a run:detach that was never recorded
// is obeyed all the same, and from there on the player numbers the envelopes. A
// window may join at any moment. The history is what a recorded client was told
// at that point, else it is made from what was streamed. HTTP requests get the
// recorded answers in order.
//
// # What replay cannot promise
//
//   - The state before the tape: messages that no recorded answer showed, files
//     and agents that no exchange told of. A fork from such a message is refused.
//   - Another input. The run is the recorded one, whatever is asked: with --match
//     input or on a miss it is refused, and never invented. An answer to a
//     decision that nobody gave on the tape leads where the recorded one led.
//   - What the gateway did beside the thread: calls of webhooks, mails, writes to
//     a database. A tool's result is shown again, the tool is not run again.
//   - What would have come otherwise. An envelope that only a replay told of has
//     no time of its own, and is sent behind the one before it. One that was
//     lost, cut or redacted is not made up. What two threads did in the same
//     millisecond has no order.
//   - Whose socket it was. What went to a thread's room goes to all of the room,
//     and with drops all sockets of the room are cut, though one was.
//   - The transport: sids, pings, acknowledgement ids, pids and offsets of
//     connection state recovery are the live connection's. Nothing of them is
//     replayed, and nobody should match by them.
//   - Where several subagents are at work at once, which of them an event belongs
//     to. One that was not detached in the recording may then be detached too
//     early: what it still streams stays in the run.
//
// # Which run answers
//
// A run:start is answered by the recorded run whose input was the same at the
// same place of the thread, else by one with the same input, else by the next of
// the thread. A live thread follows the recorded one of its id, else the next
// that none follows yet. A run that is played again in a thread gets new ids.
package tape
