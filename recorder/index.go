package recorder

import (
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Index is what was derived from the frames up to Judged. It is written in a
// commit of its own, after that of the frames; it can be dropped and made again
// from them.
type Index struct {
	Judged   capture.Position
	Posts    []conversation.Post
	Runs     []*conversation.Run    // as they stand now
	Threads  []*conversation.Thread // as they stand now
	Findings []protocol.Finding
}
