package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"tapedeck/inspector/chromium"
	"tapedeck/player"
	"tapedeck/player/engine"
	"tapedeck/player/scenario"
	"tapedeck/protocol"
	"tapedeck/recorder"
)

// TestBrowserWalk walks scenarios as a person does, in the page of a chat with
// npm's socket.io-client, in Chromium, through the proxy, from another origin:
// what the page shows must be what the scenario tells, what the client did must
// be what it expects, and the tape must hold the findings that it lists.
func TestBrowserWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the scenarios are walked in real time")
	}
	modules := nodeModules(t)
	if modules == "" {
		t.Skip("the page needs npm's socket.io-client: set TAPEDECK_NODE_MODULES")
	}
	browser := chromium.Start(t)
	page := servePage(t, modules)
	for name, walk := range map[string]func(*walker){
		"kitchen-sink": walkKitchenSink, "approval": walkApproval, "disconnect-mid-run": walkDisconnect, "second-window": walkSecondWindow,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := scenario.Builtin(name)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "walk.tape")
			cfg := player.Config{Scenario: name, Engine: engine.Config{Origins: []string{page}}}
			err = recordThrough(cfg, path, func(_ context.Context, gateway, proxy string) error {
				w := &walker{t: t, browser: browser, gateway: gateway, url: page + "/app.html?thread=t1&gateway=" + url.QueryEscape(proxy)}
				walk(w)
				for _, window := range w.windows { // an app that is closed says goodbye
					window.js("void socket.close()")
				}
				return verified(gateway, name)
			})
			if err != nil {
				t.Error(err)
			}
			sameFindings(t, s, findingsOf(t, path))
		})
	}
}

// servePage serves the app's page, and returns its origin.
func servePage(t *testing.T, modules string) string {
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir("testdata/browser")))
	mux.HandleFunc("/socket.io.min.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(modules, "socket.io-client", "dist", "socket.io.min.js"))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// verified asks the player whether the client did what the scenario expects.
func verified(gateway, name string) error {
	answer, err := http.Get(gateway + "/__tapedeck/verify?thread=t1&scenario=" + name)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && !strings.Contains(string(body), `"ok":true`) {
		err = fmt.Errorf("verify: %s", body)
	}
	return err
}

// findingsOf are those of a tape.
func findingsOf(t *testing.T, path string) []protocol.Finding {
	t.Helper()
	tape, err := recorder.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	found, err := tape.Findings(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// walker is a person with windows of the app.
type walker struct {
	t       *testing.T
	browser context.Context
	gateway string
	url     string
	windows []*window
}

// window is a window of the app.
type window struct {
	t   *testing.T
	tab context.Context
}

// open opens another window, and waits until it has joined the thread.
func (w *walker) open(more string) *window {
	w.t.Helper()
	v := &window{w.t, chromium.Tab(w.t, w.browser, chromedp.Navigate(w.url+more))}
	w.windows = append(w.windows, v)
	v.until(`["idle", "running"].includes(document.querySelector("#status").textContent)`)
	return v
}

// control calls the player's control API, as a UI test does.
func (w *walker) control(call string) {
	w.t.Helper()
	answer, err := http.Post(w.gateway+"/__tapedeck/"+call, "", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: %s", call, answer.Status)
	}
}

// js evaluates an expression in the page.
func (v *window) js(expression string) any {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.tab, time.Minute)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[any]("(() => ("+expression+") ?? null)()"))
	if err != nil {
		v.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// until waits until something is so in the page.
func (v *window) until(expression string) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.tab, 30*time.Second)
	defer cancel()
	poll := "new Promise(done => { const look = () => (" + expression + ") ? done(true) : setTimeout(look, 10); look(); })"
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](poll, chromedp.EvalAwaitPromise)); err != nil {
		v.t.Fatalf("it never came that %s: %v; the page shows:\n%s", expression, err, v.js(shown))
	}
}

// shown is what the page shows, a line for each thing.
const shown = `[...document.querySelector("#chat").children].map((e) => e.className + ": " + e.textContent).join("\n")`

// shows compares what the page shows.
func (v *window) shows(want ...string) {
	v.t.Helper()
	if diff := cmp.Diff(want, strings.Split(v.js(shown).(string), "\n")); diff != "" {
		v.t.Errorf("the page shows (-want +got):\n%s", diff)
	}
}

// whole says that no envelope was missed or came twice.
func (v *window) whole() {
	v.t.Helper()
	if got := v.js("state.holes + ' ' + state.twice"); got != "0 0" {
		v.t.Errorf("envelopes missing and twice: %s", got)
	}
}

// say sends a message as a person does.
func (v *window) say(text string) {
	v.t.Helper()
	v.do(chromedp.Click(chromedp.CSS("#input")), chromedp.KeyEvent(text+"\r"))
}

func (v *window) click(selector string) { v.t.Helper(); v.do(chromedp.Click(chromedp.CSS(selector))) }

func (v *window) do(actions ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.tab, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		v.t.Fatal(err)
	}
}

// idle waits for the end of the n-th run.
func (v *window) ended(runs int) {
	v.t.Helper()
	v.until(fmt.Sprintf(`state.run === null && Object.keys(state.last).length === %d`, runs))
}

func walkApproval(w *walker) {
	v := w.open("&transports=polling")
	v.say("Refund order 4711")
	v.until(`document.querySelector(".decision button")`)
	v.ended(1)
	v.click(".decision button")
	v.ended(2)
	v.shows("user: Refund order 4711", "text: I will refund order 4711. Please confirm the amount.", "decision: answered: approve",
		`tool: refund_order({"order":"4711","amount":49.90,"currency":"EUR"}) → {"ok":true}`, "text: Done. The refund is on its way.")
	v.whole()
}

func walkDisconnect(w *walker) {
	v := w.open("")
	v.say("Go on")
	v.until("joins === 2") // the socket was cut, and the page came back
	v.until(`document.querySelector("#status").textContent === "idle"`)
	v.shows("user: Go on", "text: This message is cut in the middle by a network that fails, and goes on all the same, to its very last word.")
	v.whole()
}

func walkSecondWindow(w *walker) {
	first := w.open("")
	first.say("Go on")
	first.until("Object.values(state.last)[0] > 8") // six deltas
	w.control("pause")
	second := w.open("")
	second.until(`state.run && document.querySelector(".text")`)
	w.control("resume")
	for _, v := range []*window{first, second} {
		v.ended(1)
		v.shows("user: Go on", "text: This message is read in two windows, of which the second one was opened a little later.")
		v.whole()
	}
}

func walkKitchenSink(w *walker) {
	v := w.open("")
	v.until(`socket.io.engine.transport.name === "websocket"`) // it began with polling
	v.say("What is going on in the shop?")
	v.ended(1)
	v.shows("user: What is going on in the shop?",
		"reasoning: The user wants an overview. I look at the orders first, then I plan.",
		`tool: list_orders({"status":"open"}) → [{"order":"4711","total":49.90},{"order":"4712","total":12.00}]`,
		`tool: check_stock({"items":["lamp","chair"]}) → {"lamp":3,"chair":0}`,
		"text: Two orders are open, **4711** and **4712**. The lamp is in stock, the chair is not.")
	if got := v.js(`document.querySelectorAll("#todos .completed").length`); got != 2.0 {
		w.t.Errorf("%v todos are shown as done, want 2", got)
	}
	v.say("Look at the chair more closely")
	v.ended(2)
	v.until(`document.querySelector(".subagent").textContent === "researcher: finished"`)

	v.say("Then settle it with the customer")
	v.until(`document.querySelectorAll(".decision button").length === 4`)
	v.ended(3)
	v.click(".decision button:nth-of-type(1)")
	v.until(`document.querySelectorAll(".decision button").length === 2`)
	v.click(".decision button:nth-of-type(2)")
	v.until(`document.querySelector(".decision input[type=date]")`)
	v.ended(4)
	v.click(".decision button")
	v.ended(5)
	v.until(`document.querySelector("#chat").lastChild.textContent === "All set. The customer is called at the time you chose: 2026-01-07."`)

	v.say("Write me a long letter")
	v.until("Object.values(state.last)[5] > 24") // twenty deltas
	v.click("#cancel")
	v.ended(6)
	v.say("Send it")
	v.ended(7)
	v.until(`document.querySelector("#chat").lastChild.textContent === "AGENT_FAILED: The agent gave up after three tries."`)
	v.whole()

	// Whoever opens the thread afterwards finds it as it was left.
	later := w.open("")
	later.until(`document.querySelector("#chat").textContent.includes("All set. The customer is called at the time you chose: 2026-01-07.")`)
}
