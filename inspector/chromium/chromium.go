// Package chromium starts a browser for tests: what people open in one is looked
// at in one.
package chromium

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"
)

// Start starts a headless Chromium, which ends with the test. Where there is none
// the test is skipped, save in CI.
func Start(t testing.TB) context.Context {
	t.Helper()
	path := find(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1440, 900))
	if os.Geteuid() == 0 { // its sandbox refuses root
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // it waits for the browser's end
			t.Error(err)
		}
		cancel()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return ctx
}

func find(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no chromium in PATH: what people open in a browser must be seen in one")
	}
	t.Skip("no chromium in PATH: what people open in a browser is not seen in one")
	return ""
}

// Tab opens another tab of the browser of ctx, which closes with the test.
func Tab(t testing.TB, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) context.Context {
	t.Helper()
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
	return ctx
}
