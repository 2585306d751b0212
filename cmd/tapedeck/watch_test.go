package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapedeck/player/scenario"
)

func TestWatchScenario(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := watchScenario(path, nil); err == nil {
		t.Error("a file that is not there was watched")
	}
	write("title: One\nsteps: [{text: one}]\n")
	var played []string
	f, err := watchScenario(path, func(s *scenario.Scenario) error {
		played = append(played, s.Title)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.look(); got != "" {
		t.Errorf("nothing changed: %q", got)
	}
	write("title: Another\nsteps: [{text: two}]\n")
	if got := f.look(); !strings.Contains(got, "mine.yaml changed") {
		t.Errorf("it changed: %q", got)
	}
	write("title: A mistake\nsteps: [{txet: three}]\n")
	if got := f.look(); !strings.Contains(got, "stays as it was") || !strings.Contains(got, "text") {
		t.Errorf("it has a mistake: %q", got)
	}
	if got := f.look(); got != "" {
		t.Errorf("the mistake is told once: %q", got)
	}
	if strings.Join(played, ",") != "Another" {
		t.Errorf("played %v", played)
	}
}
