package main

import (
	"context"
	"errors"
	"os"

	"github.com/urfave/cli/v2"

	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
	"tapedeck/recorder/live"
)

// defaultTape is the tape of a working folder.
const defaultTape = "tapedeck.tape"

func readFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "read", Aliases: []string{"r"}, Value: defaultTape, TakesFile: true,
		Usage: "the `TAPE` to read; one that a proxy is writing is read through that proxy",
	}
}

// openTape opens a tape for reading, be it a file or one that is being
// recorded. What a crash left unjudged is judged first, if the file can be
// written.
func openTape(ctx context.Context, path string) (live.Tape, error) {
	t, err := live.Open(path)
	if err != nil {
		return nil, err
	}
	unjudged, err := t.Unjudged(ctx)
	if err == nil && len(unjudged) > 0 && writable(path) {
		err = settle(ctx, path, unjudged, conversation.Options{})
	}
	// Whoever began to write meanwhile is asked from now on.
	if err != nil && !errors.Is(err, recorder.ErrLocked) {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// writable reports whether the file can be opened for writing.
func writable(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	return f.Close() == nil
}
