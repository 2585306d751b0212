package capsule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/recorder"
	"tapedeck/recorder/capsule/scrub"
)

// Format is a form of a capsule.
type Format string

// The formats. HTML is another package's.
const (
	Tape     Format = "tape"     // a small tape
	JSONL    Format = "jsonl"    // a header line, then a frame a line
	HAR      Format = "har"      // for a browser's network tab
	Scenario Format = "scenario" // YAML for the player, to edit
	AGUI     Format = "agui"     // AG-UI events, one a line
)

// Formats are all of them.
func Formats() []Format { return []Format{Tape, JSONL, HAR, Scenario, AGUI} }

var endings = map[string]Format{
	".tape": Tape, ".jsonl": JSONL, ".ndjson": JSONL, ".har": HAR, ".yaml": Scenario, ".yml": Scenario,
}

// ParseFormat reads a format's name.
func ParseFormat(name string) (Format, error) {
	var names []string
	for _, f := range Formats() {
		if string(f) == name {
			return f, nil
		}
		names = append(names, string(f))
	}
	if near := protocol.Nearest(name, names); near != "" {
		return "", fmt.Errorf("no format %q; did you mean %q?", name, near)
	}
	return "", fmt.Errorf("no format %q; there are %s", name, strings.Join(names, ", "))
}

// FormatOf tells the format by a file's ending.
func FormatOf(path string) (Format, error) {
	if strings.HasSuffix(path, ".agui.jsonl") {
		return AGUI, nil
	}
	if f, ok := endings[strings.ToLower(filepath.Ext(path))]; ok {
		return f, nil
	}
	return "", fmt.Errorf("the ending of %q tells no format; name one with --format: tape, jsonl, har, scenario or agui", path)
}

// Options say how to export. The zero value exports everything as it is.
type Options struct {
	// Format is the form; of ExportFile, "" is told by the file's ending.
	Format Format
	// Title, Comment and Marks travel with the capsule, besides those that the
	// session brought along. Marks are positions of the source.
	Title, Comment string
	Marks          []capture.Mark
	// Redact names what is taken out: see package scrub.
	Redact []string
	// Key makes the tokens of what is taken out; nil is a random one.
	Key []byte
	// Secrets must not be found in what is written, in any form.
	Secrets []scrub.Secret
	// Tool is this tapedeck, for a new tape.
	Tool string
	// Progress is called now and then, on the same goroutine, with how many of
	// how many steps are done; nil is nobody.
	Progress func(done, total int64)
}

func (o *Options) check() error {
	if _, err := scrub.New(make([]byte, 32), o.Redact); err != nil {
		return err
	}
	if o.Key != nil && len(o.Key) < 16 {
		return errors.New("the key of redaction is shorter than 16 bytes")
	}
	return nil
}

// Key returns a key for Options.Key that belongs to the tape at path: with it the
// same tape gives the same capsule each time.
func Key(ctx context.Context, path string) (key []byte, err error) {
	r, err := recorder.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.DeriveKey(ctx, "capsule redaction")
}

// key returns the key of the tokens.
func (o *Options) key() []byte {
	if o.Key != nil {
		return o.Key
	}
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return key
}
