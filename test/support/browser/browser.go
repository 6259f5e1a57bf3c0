// Package browser opens pages in Chromium for tests.
package browser

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// Timeout is the largest time to load and render a page, on a busy machine.
const Timeout = 5 * time.Minute

// screenshotsVariable names a folder for screenshots, for people.
const screenshotsVariable = "PLIMSOLL_REPORTS"

// Window is the width of a browser window in pixels and its color scheme, light or dark.
type Window struct {
	Width  int64
	Scheme string
}

// Windows have the sizes of a desktop, a tablet and a phone, light and dark.
var Windows = []Window{{1440, "light"}, {1024, "light"}, {390, "light"}, {1440, "dark"}, {1024, "dark"}, {390, "dark"}}

// String returns a name such as 390-dark.
func (w Window) String() string { return fmt.Sprintf("%d-%s", w.Width, w.Scheme) }

// Start starts a browser, with further options, that is stopped with all its processes at the end of the test.
func Start(t *testing.T, options ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: the test needs a browser, which `make test-all` installs", err)
	}
	profile := filepath.Join(t.TempDir(), "profile")
	ctx, cancel := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(append([]chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(Timeout),
	}, options...)...))
	t.Cleanup(func() {
		stopping, done := context.WithTimeout(ctx, Timeout)
		defer done()
		if err := chromedp.Cancel(stopping); err != nil {
			t.Error("stopping the browser:", err)
		}
		cancel()
		awaitExit(t, profile)
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal("starting the browser:", err)
	}
	return ctx
}

// awaitExit waits until no process names a folder: child processes of the browser end shortly after it.
func awaitExit(t *testing.T, folder string) {
	t.Helper()
	var running []string
	// The context of the test has ended.
	err := wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, Timeout, true, func(context.Context) (bool, error) {
		files, err := filepath.Glob("/proc/[0-9]*/cmdline")
		running = nil
		for _, file := range files {
			command, err := os.ReadFile(file)
			if err == nil && bytes.Contains(command, []byte(folder)) { // otherwise the process has ended
				running = append(running, strings.ReplaceAll(string(command), "\x00", " "))
			}
		}
		return len(running) == 0, err
	})
	if err != nil {
		t.Errorf("processes of the browser are still running: %q", running)
	}
}

// Open opens a page in a window.
func (w Window) Open(t *testing.T, ctx context.Context, address string) {
	t.Helper()
	w.Resize(t, ctx)
	must.Succeed(t, chromedp.Do(ctx, chromedp.Navigate(address)))
}

// Resize shows the opened page in a window of this size and color scheme.
func (w Window) Resize(t *testing.T, ctx context.Context) {
	t.Helper()
	media := func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: w.Scheme}},
		})
		return chromedp.Void{}, err
	}
	must.Succeed(t, chromedp.Do(ctx, chromedp.EmulateViewport(w.Width, 900), media))
}

// Evaluate returns the value of an expression, or of the promise that it returns.
func Evaluate[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	must.Succeed(t, err)
	return value
}

// maxFirstPaint is the largest CPU time of the process of a page until its first content is painted, start of the process included.
// Other programs hardly affect it; the tests also print the time that passes.
const maxFirstPaint = 3 * time.Second

// ExpectFirstPaint fails the test if the page that was opened in a new tab took more than maxFirstPaint to paint its first content.
func ExpectFirstPaint(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	milliseconds := Evaluate[float64](t, ctx, `new Promise(resolve => new PerformanceObserver(list => {
		for (const entry of list.getEntriesByName("first-contentful-paint")) resolve(entry.startTime);
	}).observe({type: "paint", buffered: true}))`)
	painted := time.Duration(milliseconds * float64(time.Millisecond))
	used := processTime(t, ctx)
	t.Logf("%s: first paint after %s, %s of CPU time", name, painted.Round(time.Millisecond), used.Round(time.Millisecond))
	if painted <= 0 || used > maxFirstPaint {
		t.Errorf("%s: first paint after %s, %s of CPU time, want at most %s", name, painted, used, maxFirstPaint)
	}
}

// processTime returns the CPU time of the process of the page.
func processTime(t *testing.T, ctx context.Context) time.Duration {
	t.Helper()
	seconds, err := chromedp.Run(ctx, func(ctx context.Context, target *chromedp.Target) (float64, error) {
		if _, err := cdp.Call(ctx, target, performance.Enable, performance.EnableParams{}); err != nil {
			return 0, err
		}
		result, err := cdp.Call(ctx, target, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			return 0, err
		}
		for _, metric := range result.Metrics {
			if metric.Name == "ProcessTime" {
				return metric.Value, nil
			}
		}
		return 0, fmt.Errorf("no ProcessTime in %v", result.Metrics)
	})
	must.Succeed(t, err)
	return time.Duration(seconds * float64(time.Second))
}

// ExpectUsable fails the test if the page is wider than the window or axe-core finds a violation, and keeps a
// screenshot as KeepScreenshot does.
func ExpectUsable(t *testing.T, ctx context.Context, w Window, name string) {
	t.Helper()
	if width := Evaluate[int64](t, ctx, "document.documentElement.scrollWidth"); width > w.Width {
		t.Errorf("%s: the page is %d pixels wide, want at most %d", name, width, w.Width)
	}
	for _, violation := range Violations(t, ctx) {
		t.Errorf("%s: %s", name, violation)
	}
	KeepScreenshot(t, ctx, w, name)
}

// KeepScreenshot writes a screenshot of the page to the folder in $PLIMSOLL_REPORTS if it is set. The browser takes no screenshot of
// a very long page.
func KeepScreenshot(t *testing.T, ctx context.Context, w Window, name string) {
	t.Helper()
	folder := os.Getenv(screenshotsVariable)
	if folder == "" {
		return
	}
	screenshot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Log("no screenshot:", err)
		return
	}
	file := filepath.Join(folder, strings.ReplaceAll(name, "/", "-")+"-"+w.String()+".png")
	must.Succeed(t, os.WriteFile(file, screenshot, 0o644))
}

// Violations returns the violations of accessibility rules that axe-core finds in the page, with their elements.
func Violations(t *testing.T, ctx context.Context) []string {
	t.Helper()
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	must.Succeed(t, err)
	script, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "test/browser/node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatalf("%v: `make test-all` installs it (npm ci in test/browser)", err)
	}
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[chromedp.Void](string(script)+";0")); err != nil {
		t.Fatal(err)
	}
	return Evaluate[[]string](t, ctx, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v =>
		v.id + " (" + v.help + "): " + v.nodes.slice(0, 4).map(n => n.target.join(" ") + " " + n.html.slice(0, 120)).join("; ")))`)
}
