package main

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress is a bar on a terminal, and nothing elsewhere.
type progress struct{ bar *progressbar.ProgressBar }

// progressAfter keeps short work from flashing a bar.
const progressAfter = 300 * time.Millisecond

// progress returns a bar on standard error for work of so many steps.
func (w *world) progress(what string, steps int64) progress {
	if _, ok := terminal(w.stderr); !ok || w.getenv("TERM") == "dumb" {
		return progress{}
	}
	return progress{progressbar.NewOptions64(steps,
		progressbar.OptionSetWriter(w.stderr), progressbar.OptionSetDescription(what), progressbar.OptionThrottle(progressAfter),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30),
	)}
}

func (p progress) add(n int) {
	if p.bar != nil {
		p.bar.Add(n) // a terminal that is gone ends the program by other means
	}
}

// to says how much is done, of how much.
func (p progress) to(done, total int64) {
	if p.bar != nil {
		p.bar.ChangeMax64(total)
		p.bar.Set64(done)
	}
}

func (p progress) done() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
