package page

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

// TestPageInBrowser expects that the browser applies the style sheet, the style attributes and the script
// of the page, which its policy permits, and that the script replaces the content.
func TestPageInBrowser(t *testing.T) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: the test of the live page needs a browser, which `make test` installs", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	Serve(t.Context(), listener, func(context.Context) (Live, error) {
		bar := LiveBar{Resource: "cpu", RequestFraction: 0.5}
		return Live{Nodes: []LiveNode{{Name: fmt.Sprintf("node-%d", requests.Add(1)), Bars: []LiveBar{bar}}}}, nil
	})
	ctx, cancel := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(t.TempDir(), "profile")),
	))
	ctx, stop := context.WithTimeout(ctx, 3*time.Minute)
	defer func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Error("stopping the browser:", err)
		}
		stop()
		cancel()
	}()
	// The request is 25 % of the bar, whose axis is twice the allocatable amount. A grid is only in the
	// style sheet, a width only in the attribute.
	const script = `(() => {
		const bar = document.querySelector(".bar").getBoundingClientRect();
		const request = document.querySelector(".request").getBoundingClientRect();
		return getComputedStyle(document.querySelector(".row")).display + " " + Math.round(100 * request.width / bar.width);
	})()`
	if err := chromedp.Do(ctx, chromedp.Navigate("http://"+listener.Addr().String())); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the script does not replace the content", nil, func(context.Context) (bool, error) {
		name, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector("h3").textContent`))
		return name != "node-1", err
	})
	layout, err := chromedp.Run(ctx, chromedp.Evaluate[string](script))
	if err != nil {
		t.Fatal(err)
	}
	if layout != "grid 25" {
		t.Errorf("layout %q, want %q", layout, "grid 25")
	}
}
