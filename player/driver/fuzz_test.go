package driver

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// FuzzDrive drives whatever client against whatever gateway: the drive ends when
// it may last no longer, each message is either sent or left out once, and what
// is left out has a reason.
func FuzzDrive(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("nothing in testdata: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		parts := map[string]string{}
		for _, part := range txtar.Parse(text).Files {
			parts[part.Name] = string(part.Data)
		}
		f.Add(parts["tape"], parts["gateway"])
	}
	f.Add("0s a open\n0s a > run:start {}\n0s b refused\n0s a t r TYPE\n0s a end\n", "on run:start\ncut\n")
	f.Add("0s a open\n0s a ? x []\n9999h a = null\n9999h a t r RUN_STARTED\n9999h a > run:cancel {\"runId\":\"r\"}\n", "on x\n= {\"ok\":1}\nthread t\nrun other\nRUN_STARTED\nwait 900h\n")
	f.Fuzz(func(t *testing.T, tape, gateway string) {
		synctest.Test(t, func(t *testing.T) { driveAnything(t, tape, gateway) })
	})
}

func driveAnything(t *testing.T, text, script string) {
	tape, err := write(text)
	if err != nil {
		return // no tape
	}
	recording, err := Load(t.Context(), tape, LoadOptions{})
	if err != nil {
		return // no client
	}
	g := newGateway(script)
	m, stop := serveMemory(g.engine)
	// A socket that does not hear its farewell is waited for that long.
	const limit, farewells = 10 * time.Minute, time.Minute
	began := time.Now()
	result, _ := recording.Drive(t.Context(), Options{URL: "http://gateway.test", Dial: m.dial, Limit: limit, Suffix: "x"})
	if took := time.Since(began); took > limit+farewells {
		t.Errorf("it took %v, with a limit of %v", took, limit)
	}
	must(t, g.close())
	must(t, stop())
	moves := 0
	for _, p := range recording.parties {
		moves += len(p.moves)
	}
	if len(result.Steps) > moves {
		t.Errorf("%d steps of %d moves", len(result.Steps), moves)
	}
	for _, s := range result.Steps {
		if s.Done != (s.Why == "") {
			t.Errorf("%+v: what is left out has a reason, and nothing else", s)
		}
	}
	sent, left := result.Sent()
	if n := recording.Summary().Messages; sent+left != n {
		t.Errorf("%d messages, %d sent and %d left out", n, sent, left)
	}
}
