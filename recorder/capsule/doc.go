// Package capsule makes files out of recorded runs, to be handed on, and puts
// such files back onto a tape.
//
//	done, err := ExportFile(ctx, tape, runs, "bug.jsonl", Options{Redact: []string{"text"}})
//	report, err := Import(ctx, file, sink, ImportOptions{Name: "bug.jsonl"})
//
// # What is in a capsule
//
// The frames of the runs' connections: those from the runs' commands to their
// ends, and what is needed to read them, which is how each connection began, how
// it joined the thread, and how it ended. Runs that go on after a pause go
// together. Whether that will do is tried: the frames are judged by themselves,
// and where the judge finds another thing than on the tape, all frames of the
// connections are taken, or the whole session. So a capsule says of its runs what
// the tape says. Frames are numbered anew from 1, and what they refer to with
// them.
//
// # The JSONL form, format 1
//
// The first line is an object: "tapedeckCapsule", the format; "redacted", in
// words, what was taken out; "sessions", the rows of the sessions as a tape keeps
// them, with their notes. Each line after it is a frame:
//
//	{"n":7,"at":1500000,"conn":2,"exch":1,"dir":"gateway","kind":"text","text":"42[…]"}
//
// Its number, its time in nanoseconds since the session began, the numbers of its
// connection's and its exchange's first frames, who sent it, and what it is; then
// "flags" and "size" where there is something to say, and its bytes: as "text" if
// they are UTF-8, as "base64" if not, or as "detail" if they are JSON of the
// recorder's own. Bytes come back as they were. The same capsule has the same
// lines wherever it was in between, so that it can live in git. Lines can be taken
// out by hand: numbers need to grow, no more.
//
// # What is promised
//
// An export reads the tape a few times, from its beginning, and keeps of it the
// numbers of the frames that it takes, a bit each. What is written takes its name
// when it is whole. An import takes what can be read, names the rest and leaves a
// Gap for it; times that run backwards stay. No path is taken from content, and
// nothing is allocated because a file claims a size.
//
// # What is not
//
// HAR holds neither the borders of the pieces of an HTTP body nor exchanges that
// never ended as they were; scenarios and AG-UI events hold what their names say.
package capsule
