package inspector

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"tapedeck/inspector/chromium"
)

// opened is a report in a browser, and what the page did besides.
type opened struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	trouble  []string // errors, dialogs, words on the console
	requests []string
}

// open opens a page, at its end if hash is empty.
func open(t *testing.T, ctx context.Context, report []byte, hash string) *opened {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, report, 0o600); err != nil {
		t.Fatal(err)
	}
	o := &opened{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, o.hear); err != nil {
		t.Fatal(err)
	}
	o.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, network.Enable, network.EnableParams{})
		return err
	}), chromedp.Navigate("file://"+path+hash))
	t.Cleanup(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.trouble) > 0 {
			t.Errorf("the page complained or tried something:\n%s", strings.Join(o.trouble, "\n"))
		}
		for _, url := range o.requests {
			if !strings.HasPrefix(url, "file://"+path) && !strings.HasPrefix(url, "data:") {
				t.Errorf("the page asked for %s", url)
			}
		}
		if len(o.requests) == 0 {
			t.Error("no request was heard of, not even that for the page: this test hears nothing")
		}
	})
	return o
}

func (o *opened) hear(event any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		o.requests = append(o.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		o.trouble = append(o.trouble, "exception: "+e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		o.trouble = append(o.trouble, fmt.Sprintf("console: %v", e.Args))
	case *log.EventEntryAdded:
		o.trouble = append(o.trouble, "log: "+e.Entry.Text)
	case *page.EventJavascriptDialogOpening:
		o.trouble = append(o.trouble, "dialog: "+e.Message)
	}
}

func (o *opened) do(actions ...chromedp.Action[chromedp.Void]) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.ctx, time.Minute) // a browser that hangs
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		o.t.Fatal(err)
	}
}

// js evaluates an expression once the page has drawn what it was told.
func js[T any](o *opened, expression string) T {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.ctx, time.Minute)
	defer cancel()
	drawn := "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(" + expression + "))))"
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](drawn, chromedp.EvalAwaitPromise))
	if err != nil {
		o.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

func (o *opened) want(what, expression, want string) {
	o.t.Helper()
	if got := js[string](o, "String("+expression+")"); got != want {
		o.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// key presses a key on the page, and not in a field.
func (o *opened) key(key string) { o.t.Helper(); o.do(chromedp.KeyEvent(key)) }

func (o *opened) click(selector string) { o.t.Helper(); o.do(chromedp.Click(chromedp.CSS(selector))) }

// media says what the page is drawn for.
func (o *opened) media(p emulation.SetEmulatedMediaParams) {
	o.t.Helper()
	o.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, p)
		return err
	}))
}

// filter writes a filter as a person would.
func (o *opened) filter(text string) {
	o.t.Helper()
	o.click("#filter")
	js[bool](o, `document.querySelector("#filter").select() ?? true`)
	o.do(chromedp.KeyEvent(text))
}

const (
	countText = `document.querySelector("#count").textContent`
	chosenRow = `document.querySelector("#rows [aria-selected=true]")?.textContent.split(" ")[0].replace(/\+.*/, "")`
)

func report(t testing.TB, tp *tape, o HTMLOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHTML(context.Background(), &b, tp, tp.runs, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBrowser(t *testing.T) {
	ctx := chromium.Start(t)
	thread := report(t, readTape(t, "thread"), HTMLOptions{Tool: "1.0.0"})

	t.Run("filter", func(t *testing.T) {
		o := open(t, chromium.Tab(t, ctx), thread, "")
		o.want("all", countText, "66")
		for _, tt := range []struct{ filter, count string }{
			{"type:TOOL_CALL_*", "12 of 66"}, {"type:tool_call_args OR type:INTERRUPT", "7 of 66"}, {"dir:client", "4 of 66"}, {"has:finding", "4 of 66"},
			{"rule:sequence-gap", "1 of 66"}, {"sev:note", "3 of 66"}, {"run:b81c", "14 of 66"}, {"seq:10..12 run:7f3a", "3 of 66"}, {"-type:*", "6 of 66"},
			{`"two "`, "1 of 66"}, {"9007199254740993", "1 of 66"}, {"cmd:run:start", "2 of 66"}, {"size:>200", "2 of 66"},
			{"at:77", "1 of 66"}, {"has:finding -sev:note", "1 of 66"}, {"nowhere", "0 of 66"},
			{"tpye:X", `no field "tpye": there are type name cmd dir win run thread tool src seq size at rule sev has text`},
		} {
			o.filter(tt.filter)
			o.want(tt.filter, countText, tt.count)
		}
		o.key("\x1b")
		o.want("after Escape", countText, "66")
		o.click(`[data-filter="has:finding"]`)
		o.want("a filter at hand", countText, "4 of 66")
	})

	t.Run("jump", func(t *testing.T) {
		o := open(t, chromium.Tab(t, ctx), thread, "")
		o.click(`#findings [data-at="77"]`)
		o.want("the envelope", chosenRow, "#77")
		o.want("the detail", `document.querySelector("#detail h3").textContent`, "#77  TEXT_MESSAGE_CONTENT")
		o.want("its finding", `document.querySelector("#detail .found code").textContent`, "sequence-gap")
		o.want("the construct", `document.querySelector(".i.on .text").textContent`, "There are three the ")
		o.want("it is in view", `(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector(".i.on").getBoundingClientRect())`, "true")
		o.want("the bar", `document.querySelector(".bar.on").dataset.at`, "71")
		o.want("the address", `location.hash`, "#e77")
		o.click(`.i-decision .at`)
		o.want("from the transcript", chosenRow, "#43")
		o.key("j")
		o.want("the next", chosenRow, "#44")
		o.key("k")
		o.key("k")
		o.want("the one before", chosenRow, "#42")
		o.key("n")
		o.want("the next finding", chosenRow, "#55")
		o.key("G")
		o.want("the last", chosenRow, "#78")
		o.key("N")
		o.want("the finding before", chosenRow, "#77")
		o.filter("type:RUN_*")
		o.key("\r")
		o.key("g")
		o.want("the first that matches", chosenRow, "#9")
		o.click(`#findings [data-at="55"]`)
		o.want("a jump to what the filter hides takes it away", countText, "66")
		o.want("all digits (J10)", `document.querySelector("#detail pre").textContent.includes("9007199254740993")`, "true")
		o.key("?")
		o.want("the help", `document.querySelector("#help").open`, "true")
	})

	t.Run("link", func(t *testing.T) {
		o := open(t, chromium.Tab(t, ctx), thread, "#e55")
		o.want("the envelope", chosenRow, "#55")
	})

	t.Run("phone", func(t *testing.T) {
		o := open(t, chromium.Tab(t, ctx, chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile)), thread, "")
		o.want("nothing is wider than the screen", `document.documentElement.scrollWidth`, "360")
		o.want("text can be read", `parseFloat(getComputedStyle(document.querySelector(".i-text .text")).fontSize) >= 14`, "true")
	})

	t.Run("dark and print", func(t *testing.T) {
		background := `getComputedStyle(document.body).backgroundColor`
		o := open(t, chromium.Tab(t, ctx), thread, "")
		o.want("light", background, "rgb(250, 250, 248)")
		o.media(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
		o.want("dark", background, "rgb(21, 23, 27)")
		o.media(emulation.SetEmulatedMediaParams{Media: "print"})
		o.want("print", background, "rgb(255, 255, 255)")
		o.want("the list is not printed", `getComputedStyle(document.querySelector("#envelopes")).display`, "none")
		pdf, err := chromedp.Run(o.ctx, chromedp.PrintToPDF())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(pdf, []byte("%PDF")) {
			t.Error("it does not print")
		}
	})

	t.Run("hostile", func(t *testing.T) {
		for _, hash := range []string{"", "#e1", "#e<img>"} {
			o := open(t, chromium.Tab(t, ctx), report(t, hostileTape(t), HTMLOptions{Title: attack, Comment: attack, Tool: attack}), hash)
			o.want("nothing of it ran", `window.owned`, "undefined")
			o.want("nothing of it is an element", `document.querySelectorAll("img, iframe, object, link[rel=stylesheet], [onerror], [onload], .chat script, #detail script").length`, "0")
			o.want("the title", `document.title`, attack)
			o.filter("owned")
			o.key("\r")
			for range 12 {
				o.key("j")
			}
			o.want("nothing of it ran", `window.owned`, "undefined")
			o.want("no mark of direction is obeyed", `document.body.innerText.includes("\u202e")`, "false")
		}
	})

	t.Run("ten thousand", func(t *testing.T) {
		page := report(t, longTape(t, 10_000), HTMLOptions{})
		start := time.Now()
		o := open(t, chromium.Tab(t, ctx), page, "")
		o.want("all", countText, "10,303")
		t.Logf("10,000 envelopes, %d bytes: opened and drawn after %v", len(page), time.Since(start).Round(time.Millisecond))
		if n := js[int](o, `document.querySelectorAll("*").length`); n > 9_000 {
			t.Errorf("the page has %d elements: they must not grow with the envelopes", n)
		}
		if n := js[int](o, `document.querySelectorAll("#rows > *").length`); n > 80 {
			t.Errorf("the list holds %d rows: only those to be seen should be there", n)
		}
		o.key("G")
		o.want("the last", chosenRow, "#10308")
		o.filter("type:RUN_FINISHED")
		o.want("the filter", countText, "1 of 10,303")
	})
}
