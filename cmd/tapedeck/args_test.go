package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
)

func TestSortArgs(t *testing.T) {
	commands := []*cli.Command{
		{Name: "show", Flags: []cli.Flag{
			&cli.StringFlag{Name: "read", Aliases: []string{"r"}}, &cli.BoolFlag{Name: "raw"}, &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}},
		}},
		{Name: "scenarios", Subcommands: []*cli.Command{{Name: "show"}}},
	}
	for _, c := range []struct{ in, want, err string }{
		{in: "", want: ""},
		{in: "--help", want: "--help"},
		{in: "nope --read x", want: "nope --read x"},
		{in: "show", want: "show"},
		{in: "show last", want: "show -- last"},
		{in: "show last -r x", want: "show -r x -- last"},
		{in: "show last --raw again", want: "show --raw -- last again"},
		{in: "show --read=x last -q", want: "show --read=x -q -- last"},
		{in: "show -r -", want: "show -r -"},
		{in: "show - --raw", want: "show --raw -- -"},
		{in: "show -- --raw", want: "show -- --raw"},
		{in: "show last --help", want: "show --help -- last"},
		{in: "scenarios show approval", want: "scenarios show -- approval"},
		{in: "show last --rwa", err: "did you mean --raw"},
		{in: "show last --zzz", err: "tapedeck show --help"},
		{in: "show last -r", err: "-r needs a value"},
	} {
		got, err := sortArgs(commands, append([]string{"tapedeck"}, strings.Fields(c.in)...))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: got error %v, want %q", c.in, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if diff := cmp.Diff(strings.Fields("tapedeck "+c.want), got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.in, diff)
		}
	}
}

func TestParseSize(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int
		err  string
	}{
		{in: "0", want: 0}, {in: "1000", want: 1000}, {in: "64MiB", want: 64 << 20}, {in: "64 mib", want: 64 << 20},
		{in: "10k", want: 10 << 10}, {in: "10kB", want: 10_000}, {in: "1.5GiB", want: 3 << 29},
		{in: "", err: "not a number"}, {in: "-1", err: "not a number"}, {in: "3parsecs", err: "the unit"}, {in: "3GiB", err: "over 2 GiB"},
	} {
		got, err := parseSize(c.in)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("parseSize(%q) = %d, %v, want %d, %q", c.in, got, err, c.want, c.err)
		}
	}
}
