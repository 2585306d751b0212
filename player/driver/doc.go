// Package driver plays the client of a recorded session against a live gateway:
// the other half of the honest player.
//
// # What it does
//
// Each socket of the recording, of Socket.IO or of plain JSON, is a window: it is
// opened, used and left as it was. A message is sent when what the recorded client had seen
// before it has come again, and not by the clock: the gateway's announcement,
// the answers to what was asked before, the end of the run, the decision that is
// answered, or, in the middle of a run, the n-th event of the type that came
// last. Then the client thinks as long as it did, up to Options.MaxThink. Windows
// that have a thread in common are one client, whose moves keep their order;
// clients do not wait for each other.
//
// Ids that the gateway chose, of runs, decisions, tool calls, messages and
// subagents' threads, are replaced by the live ones at the same place: the second
// subagent of the third run stands for the second subagent of the third run. Of
// several decisions the one that asks the same is answered, else the one at the
// same place. Ids that the client chose get a suffix, since a gateway refuses a
// message that it has seen; Options.KeepIDs sends them as recorded, and
// Options.Threads names threads that the gateway has. All else of a message goes
// out byte for byte.
//
// # What it promises
//
// It ends. Whatever does not come is given up after Options.Patience of silence,
// and all of it after Options.Limit; a message of more than 256 MiB ends its
// window. It says what it left out, and where the live gateway led another way:
// which message waited, at which place of the tape, for what, from which place,
// and where the live run stood instead. A cancel, a detach or an answer whose run
// is not there is not sent to another one.
//
// # What it cannot promise
//
//   - The same text. A model says it otherwise each time, calls other tools, and
//     asks other decisions; a recorded answer is then the answer to something
//     else. That is why runs are compared by how they end, and one difference is
//     no proof: drive it more often.
//   - The same moment. The n-th event comes when it comes, and what crosses on the
//     wire crosses otherwise: a cancel may find one more event sent than before.
//     A run with fewer deltas than the recorded one never reaches the place at
//     which it was cancelled, and that is said.
//   - The state before. A thread that had messages when the recording began, files
//     that were uploaded, an agent's memory, a clock, a quota: a fresh thread has
//     none of it. HTTP requests are not repeated.
//   - Secrets. They are not on the tape: credentials and all other headers of the
//     handshake come from Options, and parameters of a query that were redacted
//     are left out. Text that was redacted is sent redacted.
//   - The transport. All windows speak WebSocket, each on a connection of its own;
//     polling, binary attachments, acknowledgements to the gateway, and the
//     recovery of a connection's state are not repeated.
//   - Whose fault an end was. A socket that broke off without a Close frame is
//     broken off again, by the driver; one that the gateway closed is waited for.
package driver
