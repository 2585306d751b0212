package capsule

import (
	"os"
	"testing"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// TestArchiveOfABrowser imports what Playwright saved of Chromium while npm's
// socket.io-client polled, upgraded to WebSocket, started a run and answered its
// decision. The proxy's recording of the same hour had the same two runs and no
// finding either.
func TestArchiveOfABrowser(t *testing.T) {
	text, err := os.ReadFile("testdata/har/playwright-upgrade.har")
	if err != nil {
		t.Fatal(err)
	}
	tape, report := importText(t, string(text))
	if report.Broken > 0 {
		t.Errorf("skipped %v", report.Skipped)
	}
	connections := 0
	for _, f := range framesIn(t, tape) {
		if f.Kind == capture.Open {
			connections++
		}
	}
	if connections != 1 {
		t.Errorf("it became %d connections: polling and the WebSocket that it upgrades to are one", connections)
	}
	runs := runsOf(t, tape)
	if len(runs) != 2 || runs[0].Status != conversation.Finished || runs[1].Status != conversation.Finished ||
		runs[0].Envelopes+runs[1].Envelopes != 35 || runs[0].Input+runs[1].Input != "Refund order 4711" {
		t.Errorf("the runs are %+v", runs)
	}
	found, err := tape.Findings(t.Context(), nil)
	if err != nil || len(found) > 0 {
		t.Errorf("findings: %+v, %v", found, err)
	}
}
