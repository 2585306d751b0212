// Command tapedeck is a record-and-replay debugging proxy for chat gateways.
//
// Data goes to standard output, talk to standard error; a line of talk begins
// with "tapedeck: ", in lower case and without a period. Colour is used where a
// terminal reads, unless NO_COLOR is set. The exit codes are in exit.go.
package main

import (
	"context"
	"io"
	"os"
)

// world is what a command touches outside its flags.
type world struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
}

func main() {
	w := &world{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}
	os.Exit(run(context.Background(), w, os.Args))
}

// run runs the command line and returns the exit code.
func run(ctx context.Context, w *world, args []string) int {
	app := newApp(w)
	sorted, err := sortArgs(app.Commands, args)
	if err == nil {
		err = app.RunContext(ctx, sorted)
	}
	return w.exit(err)
}
