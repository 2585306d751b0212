// Package scenario reads synthetic conversations from YAML and compiles them
// into scripts. It holds the built-in ones. It is pure: the same scenario, seed,
// thread and answers give the same bytes.
//
// A scenario is one document:
//
//	title: One question, one answer     # one line
//	about: What a chat UI should show.
//	seed: 1                             # of ids and jitter
//	pace: {ttft: 300ms, rate: 30, jitter: 0.2, chunk: word}
//	resume: new-run                     # or same-run
//	gateway: {replay: 40}               # what differs around the runs
//	steps: […]                          # of its only run, or
//	runs: [{steps: […]}, …]             # the n-th answers the n-th run:start
//	client: […]                         # what the client is expected to do
//	findings: [run-open-items]          # what a validator finds then, exactly
//
// A run begins with RUN_STARTED and ends with RUN_FINISHED by itself. Its steps:
//
//   - text: Hello                       # or {content, fill, repeat, id, role, stall, steps, open}
//   - reasoning: Let me see             # the same keys
//   - tool: {name, id, arguments, argumentsText, took, result, fill, noResult}
//   - result: {of: ID, content: …}      # of a tool with noResult
//   - clientTool: {name, id, kind, arguments, otherwise: […]}
//   - interrupt: {id, payload}          # neighbours make one pause
//   - answer: [{if: approve, steps: […]}, {steps: […]}]
//   - todos: [{content, status}]
//   - subagent: {name, id, prompt, steps, status, result}
//   - parallel: [[steps], [steps]]      # lanes, merged by time
//   - wait: 2s
//   - error: {code, message}            # ends the run, as do cancel and finish
//   - raw: {event, json, version, thread, run, sequence, skip, repeat, extra}
//   - send: {message, payload, binary}  # a message other than run:event
//   - drop: true                        # cuts the room's sockets; close closes them
//   - forget: true                      # the gateway restarts
//   - expect: thread:messages           # or {command, within}: waits for the client
//   - open: {thread, input, steps}      # a run that no client asked for
//
// A text, a reasoning and a tool may have a pace of their own: ttft, rate (a
// number or max), jitter and chunk, which is whole, word, char, grapheme,
// mid-surrogate or a number of characters. In strings, {{input}}, {{answer}},
// {{thread}}, {{run}}, {{messageId}}, {{message:ID}}, {{tool:ID}} and
// {{decision:ID}} stand for what they name, and {{fill:N}} for N bytes of text.
//
// A run may also have refuse: {code, message}, start: 5s, none or never, a pace, and
// cancel: stop, ignore or a list of steps, which is what run:cancel does to it.
// The gateway may have hello, refuse, replay, seam, history and unknown.
//
// The client's moves are start, resume, cancel, detach, join, leave and await,
// each with when: EVENT or EVENT*N, after: 2s, window, thread, which, tools and
// refused.
package scenario
