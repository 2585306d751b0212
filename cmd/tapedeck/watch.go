package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"tapedeck/player/scenario"
)

// watchEvery is how often a watched file is looked at. Editors replace files in
// ways that notifications tell differently on each system; a look tells the same.
const watchEvery = 300 * time.Millisecond

// watchedScenario is a scenario's file that is read again when it changes.
type watchedScenario struct {
	path    string
	seen    os.FileInfo
	replace func(*scenario.Scenario) error
}

// watchScenario begins to watch a file.
func watchScenario(path string, replace func(*scenario.Scenario) error) (*watchedScenario, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usageError("play: --watch needs the scenario to be a file: %v", err)
	}
	return &watchedScenario{path, info, replace}, nil
}

// run looks at the file until ctx ends. What it returns waits for that.
func (f *watchedScenario) run(ctx context.Context, say func(format string, args ...any)) (wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if text := f.look(); text != "" {
					say("%s", text)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// look reads the file again if it changed, and returns what there is to say. A
// file with a mistake in it is not played; the one before it goes on.
func (f *watchedScenario) look() string {
	info, err := os.Stat(f.path)
	if err != nil || info.ModTime().Equal(f.seen.ModTime()) && info.Size() == f.seen.Size() {
		return "" // an editor may be replacing it just now
	}
	f.seen = info
	changed, err := scenario.Load(f.path)
	if err == nil {
		err = f.replace(changed)
	}
	if err != nil {
		return fmt.Sprintf("the scenario stays as it was: %v", err)
	}
	return fmt.Sprintf("%s changed: the next run:start plays it", f.path)
}
