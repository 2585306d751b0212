package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// node returns a command that runs a script of testdata with the real packages.
// Where they are missing, the test is skipped, but never in CI.
func node(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("CI") == "true" {
		missing = t.Fatalf
	}
	program, err := exec.LookPath("node")
	if err != nil {
		missing("node is missing: %v", err)
	}
	modules := os.Getenv("TAPEDECK_NODE_MODULES")
	if modules == "" {
		if modules, err = filepath.Abs("testdata/node_modules"); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"socket.io", "socket.io-client"} {
		if _, err := os.Stat(filepath.Join(modules, name)); err != nil {
			missing("%s is missing: run npm install in proxy/testdata, or set TAPEDECK_NODE_MODULES: %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, append([]string{filepath.Join("testdata", script)}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	cmd.Stderr = os.Stderr
	return cmd
}

// nodeGateway runs the real gateway until the test ends, with the given
// heartbeat in milliseconds, and returns its address.
func nodeGateway(t *testing.T, interval, timeout string) string {
	t.Helper()
	cmd := node(t, "gateway.cjs", interval, timeout)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		io.Copy(io.Discard, stdout)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the gateway: %v", err)
		}
	})
	port, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the gateway did not say its port: %v", err)
	}
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}

// The real client and the real gateway behave through the proxy as they do
// without it, by every transport; and every packet is on the tape.
func TestRealClient(t *testing.T) {
	gateway := nodeGateway(t, "300", "1000")
	gate := func(c *Config) { c.Gate = gateFunc(func(*capture.Frame) Verdict { return Verdict{} }) }
	compressed := func(c *Config) { c.KeepCompression = true }
	const both = "polling,websocket"
	direct := map[string]string{}
	for _, test := range []struct {
		name, transports string
		change           func(*Config)
	}{
		{"default", both, nil},
		{"websocket only", "websocket", nil},
		{"polling only", "polling", nil},
		{"compressed", both, compressed},
		{"gated", both, gate},
		{"gated polling", "polling", gate},
	} {
		t.Run(test.name, func(t *testing.T) {
			if direct[test.transports] == "" {
				direct[test.transports] = transcript(t, gateway, test.transports)
			}
			address, tape := start(t, gateway, test.change)
			through := transcript(t, "http://"+address, test.transports)
			if diff := cmp.Diff(direct[test.transports], through); diff != "" {
				t.Errorf("transcript (-direct +through):\n%s", diff)
			}
			checkPackets(t, first(tape.all()), test.transports)
		})
	}
}

func transcript(t *testing.T, url, transports string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := node(t, "client.cjs", url, transports)
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Errorf("the client at %s: %v; it said\n%s", url, err, out.String())
	}
	return out.String()
}

// checkPackets decodes a tape and looks for what the client's script did.
func checkPackets(t *testing.T, frames []capture.Frame, transports string) {
	t.Helper()
	var d wire.Decoder
	events := map[string]int{}
	bytes := 0
	for i := range frames {
		for _, p := range d.Decode(&frames[i]) {
			if p.Reason != "" {
				t.Errorf("frame %d cannot be read: %s: %q", frames[i].Position, p.Reason, p.Raw)
			}
			if p.Name != "" {
				events[p.Direction.String()+" "+p.Name]++
			}
			for _, a := range p.Attachments {
				bytes += len(a)
			}
		}
	}
	want := map[string]int{
		"gateway hello": 20, "gateway question": 1,
		"client echo": 4, "client binary": 1, "client ask": 1, "client drop": 1, "client leave": 1,
	}
	if strings.HasPrefix(transports, "polling") && !strings.Contains(transports, "websocket") {
		want["client echo"] = events["client echo"] // the one that is too large is refused by its length, and may be cut
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events on the tape (-want +got):\n%s", diff)
	}
	if want := 2 * (4 + 300); bytes != want {
		t.Errorf("attachments of %d bytes on the tape, want %d", bytes, want)
	}
	// The socket's four, and the namespace's that was refused.
	if n := len(filter(frames, kind(capture.Open))); n != 5 {
		t.Errorf("%d connections on the tape, want 5", n)
	}
}

// E02: the upgrade from polling to a WebSocket loses and doubles nothing, also
// when polling is slow; each client is one connection on the tape.
func TestManyUpgrades(t *testing.T) {
	gateway := nodeGateway(t, "25000", "20000")
	const clients = 50
	slow := gateFunc(func(f *capture.Frame) Verdict {
		if f.Kind == capture.Polling {
			time.Sleep(100 * time.Millisecond) // what the test is about, not what it waits for
		}
		return Verdict{}
	})
	// Each client is sent something of the gate's own while it is upgraded.
	answering := gateFunc(func(f *capture.Frame) Verdict {
		if f.Kind == capture.Polling && f.Direction == capture.FromClient && string(f.Data) == "40" {
			return Verdict{Replace: f.Data, Answers: [][]byte{[]byte(`42["noise"]`), []byte(`42["noise"]`)}}
		}
		return Verdict{}
	})
	for name, change := range map[string]func(*Config){
		"fast": nil, "slow polling": func(c *Config) { c.Gate = slow }, "answering": func(c *Config) { c.Gate = answering },
	} {
		t.Run(name, func(t *testing.T) {
			address, tape := start(t, gateway, change)
			out, err := node(t, "many.cjs", "http://"+address, strconv.Itoa(clients)).Output()
			if want := fmt.Sprintf("{\"0,1,2,3,4\":%d}\n", clients); err != nil || string(out) != want {
				t.Errorf("the clients saw %s, %v; want %s", out, err, want)
			}
			frames := tape.wait(t, clients, kind(capture.End))
			if n := len(filter(frames, kind(capture.Open))); n != clients {
				t.Errorf("%d connections on the tape, want %d", n, clients)
			}
			var d wire.Decoder
			seen := map[capture.Position]string{}
			for i := range frames {
				for _, p := range d.Decode(&frames[i]) {
					if p.Name == "hello" {
						seen[p.Connection] += string(p.Args[0])
					}
				}
			}
			for c, order := range seen {
				if order != "01234" {
					t.Errorf("connection %d has the hellos %s", c, order)
				}
			}
		})
	}
}
