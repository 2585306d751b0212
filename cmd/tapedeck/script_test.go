package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tapedeck/player/actor"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tapedeck": main})
}

// TestScripts runs whole commands, as testdata/script tells: the real binary,
// real sockets, and npm's socket.io at both ends where a script says "node".
func TestScripts(t *testing.T) {
	modules := nodeModules(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			programs, err := filepath.Abs("testdata/node")
			if err != nil {
				return err
			}
			env.Setenv("PROGRAMS", programs)
			env.Setenv("TAPEDECK_NODE_MODULES", modules)
			env.Setenv("COLUMNS", "160")
			env.Setenv("GORACE", "atexit_sleep_ms=0") // or each command of a race build sleeps a second
			env.Values[servers{}] = &sync.Map{}
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "npm" {
				return modules != "", nil
			}
			return false, fmt.Errorf("no condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": serve,
			"end":   end,
			"act":   act,
		},
	})
}

// nodeModules returns the folder with npm's socket.io and socket.io-client, ""
// where there is none; the scripts that need it skip then, but never in CI.
func nodeModules(t *testing.T) string {
	modules := os.Getenv("TAPEDECK_NODE_MODULES")
	_, err := os.Stat(filepath.Join(modules, "socket.io-client"))
	if _, nodeErr := exec.LookPath("node"); err == nil && nodeErr == nil && modules != "" {
		return modules
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("CI needs node, and TAPEDECK_NODE_MODULES with socket.io and socket.io-client in it")
	}
	t.Log("scripts with npm's socket.io are skipped: set TAPEDECK_NODE_MODULES to a folder that has socket.io and socket.io-client")
	return ""
}

type servers struct{}

// server is a program that a script started and that said where it listens.
type server struct {
	cmd  *exec.Cmd
	out  *os.File
	err  *os.File
	done chan error
}

// serve VAR PROGRAM ARG…: starts a program, waits until it says where it
// listens, and sets VAR to that, and VAR_HOST to its host and port. What it
// prints is in VAR.out and VAR.err.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: serve VAR PROGRAM ARG…")
	}
	name := args[0]
	s := &server{cmd: exec.Command(lookPath(ts, args[1]), args[2:]...), done: make(chan error, 1)}
	s.cmd.Dir = ts.MkAbs(".")
	for _, v := range []string{"PATH", "HOME", "TMPDIR", "PROGRAMS", "TAPEDECK_NODE_MODULES", "COLUMNS", "GORACE"} {
		s.cmd.Env = append(s.cmd.Env, v+"="+ts.Getenv(v))
	}
	var err error
	s.out, err = os.Create(ts.MkAbs(name + ".out"))
	ts.Check(err)
	s.err, err = os.Create(ts.MkAbs(name + ".err"))
	ts.Check(err)
	ready := make(chan string, 2)
	outPipe, outEnd := io.Pipe()
	errPipe, errEnd := io.Pipe()
	s.cmd.Stdout, s.cmd.Stderr = io.MultiWriter(s.out, outEnd), io.MultiWriter(s.err, errEnd)
	ts.Check(s.cmd.Start())
	var scans sync.WaitGroup
	for _, pipe := range []*io.PipeReader{outPipe, errPipe} {
		scans.Go(func() { scanReady(pipe, ready) })
	}
	go func() {
		err := s.cmd.Wait()
		outEnd.Close()
		errEnd.Close()
		scans.Wait()
		s.done <- err
	}()
	ts.Value(servers{}).(*sync.Map).Store(name, s)
	ts.Defer(func() {
		s.cmd.Process.Kill()
		s.out.Close()
		s.err.Close()
	})
	select {
	case address := <-ready:
		ts.Setenv(name, address)
		ts.Setenv(name+"_HOST", strings.TrimPrefix(address, "http://"))
	case err := <-s.done:
		ts.Fatalf("%s ended before it listened: %v\n%s", args[1], err, ts.ReadFile(name+".err"))
	case <-time.After(30 * time.Second):
		ts.Fatalf("%s does not say where it listens", args[1])
	}
}

var listening = regexp.MustCompile(`listening (?:on )?(\S+)`)

// scanReady sends the first address that a program says it listens on, and
// reads on to the end.
func scanReady(r io.Reader, ready chan<- string) {
	lines := bufio.NewReader(r)
	found := false
	for {
		line, err := lines.ReadString('\n')
		if m := listening.FindStringSubmatch(line); m != nil && !found {
			found = true
			ready <- m[1]
		}
		if err != nil {
			return
		}
	}
}

// end VAR [SIGNAL]: sends a server a signal, INT by default, and waits for it
// to end: of that signal, or with exit code 0; with !, by another code.
func end(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}
	signal := syscall.SIGINT
	if len(args) == 2 {
		signal = signals[args[1]]
	}
	v, ok := ts.Value(servers{}).(*sync.Map).LoadAndDelete(args[0])
	if !ok || signal == 0 {
		ts.Fatalf("usage: end VAR [INT|TERM|KILL], with the VAR of a serve")
	}
	s := v.(*server)
	ts.Check(s.cmd.Process.Signal(signal))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	select {
	case err := <-s.done:
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == signal {
			err = nil
		}
		if (err != nil) != neg {
			ts.Fatalf("%s ended with %v\n%s", args[0], err, ts.ReadFile(args[0]+".err"))
		}
	case <-ctx.Done():
		ts.Fatalf("%s does not end", args[0])
	}
}

// act URL SCENARIO: plays the client of a scenario on a real socket.
func act(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: act URL SCENARIO")
	}
	s, err := findScenario(args[1])
	if strings.Contains(args[1], ".yaml") {
		s, err = findScenario(ts.MkAbs(args[1]))
	}
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ts.Check(actor.Play(ctx, s, actor.Options{URL: args[0], Thread: "thread-1"}))
}

// lookPath finds a program on the script's own PATH, where tapedeck is.
func lookPath(ts *testscript.TestScript, program string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	ts.Fatalf("no program %s on the PATH %s", program, strings.ReplaceAll(ts.Getenv("PATH"), ":", " "))
	return ""
}
