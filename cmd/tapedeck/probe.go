package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tapedeck/protocol/capture"
	"tapedeck/recorder/capsule"
)

// probe is a command that fails on a capsule, or does not.
type probe struct {
	line  string
	limit time.Duration // of one try
	out   io.Writer     // what it prints goes there; nil hides it

	session capture.Session
	dir     string
	file    string
	notes   capsule.Options
	code    int // that it ends with on the whole run
}

// open makes room for the capsules that are tried.
func (p *probe) open(r *reduction) (err error) {
	p.session, p.notes = r.session, r.notes
	if p.dir, err = os.MkdirTemp("", "tapedeck-"); err != nil {
		return fmt.Errorf("reduce: %w", err)
	}
	p.file = filepath.Join(p.dir, "try"+filepath.Ext(r.out))
	return nil
}

func (p *probe) close() error { return os.RemoveAll(p.dir) }

// still reports whether the command ends with frames as it did with the whole
// run. A command that takes too long has not failed.
func (p *probe) still(ctx context.Context, frames []capture.Frame) (bool, error) {
	if len(frames) == 0 {
		return false, nil
	}
	if _, err := capsule.ExportFile(ctx, capsule.Hold(p.session, frames), nil, p.file, p.notes); err != nil {
		return false, err
	}
	code, err := p.run(ctx)
	if p.code == 0 {
		p.code = code
	}
	return err == nil && code != 0 && code == p.code, err
}

// run runs the command and returns its exit code, 0 if it took too long.
func (p *probe) run(ctx context.Context) (int, error) {
	limited, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	c := exec.CommandContext(limited, "sh", "-c", strings.ReplaceAll(p.line, "{}", p.file))
	c.Env = append(os.Environ(), "TAPEDECK_CAPSULE="+p.file)
	c.Stdout, c.Stderr = p.out, p.out
	c.WaitDelay = time.Second
	err := c.Run()
	failed, ran := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case limited.Err() != nil:
		return 0, nil
	case ran:
		return failed.ExitCode(), nil
	case err != nil:
		return 0, fmt.Errorf("run %q: %w", p.line, err)
	}
	return 0, nil
}
