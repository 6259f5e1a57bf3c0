package report

import (
	"bytes"
	"context"
	_ "embed"
	"image/png"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/browser"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// project is the folder of the project.
const project = "../../.."

// layout is the result of testdata/layout.js: properties of a rendered page.
type layout struct {
	// Overflow is the number of pixels by which the page is wider than its window.
	Overflow int `json:"overflow"`
	// Wide has the elements that are wider than the window.
	Wide []string `json:"wide"`
	// Scrolling has the labels of the tables that are wider than the page, and scroll.
	Scrolling []string `json:"scrolling"`
	// Narrow has the names of table rows in columns in which words are broken.
	Narrow []string `json:"narrow"`
	// Rows has the table rows that are not displayed as table rows.
	Rows []string `json:"rows"`
	// Scripts and Handlers are the numbers of script elements and event handlers.
	Scripts  int `json:"scripts"`
	Handlers int `json:"handlers"`
	// Executed is true if a script of the page ran.
	Executed bool `json:"executed"`
	// Drawings is the number of SVG elements. Drawings in Empty have no size, in Clipped text
	// outside of the drawing, and in Overlapping text over other text.
	Drawings    int      `json:"drawings"`
	Empty       []string `json:"empty"`
	Clipped     []string `json:"clipped"`
	Overlapping []string `json:"overlapping"`
	// LowContrast has texts with a contrast below 4.5 to 1, the level AA of WCAG 2.2.
	LowContrast []string `json:"lowContrast"`
}

//go:embed testdata/layout.js
var layoutScript string

// startBrowser starts a browser without network access that is stopped at the end of the test.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	return browser.Start(t, chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"))
}

// window is the size and the color scheme of a browser window.
type window struct {
	name   string
	width  int64
	scheme string
}

// windows has the windows to test with. The dark windows differ only in colors and are tested with
// one report.
var windows = []window{
	{"wide", 1440, "light"},
	{"narrow", 390, "light"},
	{"medium", 1024, "light"},
	{"dark", 1440, "dark"},
	{"medium-dark", 1024, "dark"},
	{"narrow-dark", 390, "dark"},
}

// open opens a page in a window.
func (w window) open(ctx context.Context, address string) error {
	return chromedp.Do(ctx,
		chromedp.EmulateViewport(w.width, 900),
		func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: w.scheme}},
			})
			return chromedp.Void{}, err
		},
		chromedp.Navigate(address),
	)
}

// requests records the requests of a page.
type requests struct {
	mu   sync.Mutex
	urls []string
}

// listen starts to record the requests of a tab.
func (r *requests) listen(tab context.Context) error {
	return chromedp.Listen(tab, func(event any) {
		if sent, ok := event.(*network.EventRequestWillBeSent); ok {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.urls = append(r.urls, sent.Request.URL)
		}
	})
}

// list returns the URLs of the requests.
func (r *requests) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.urls)
}

// readLayout opens all details of the page and returns its layout.
func readLayout(ctx context.Context) (layout, error) {
	return chromedp.Run(ctx, chromedp.Evaluate[layout](layoutScript))
}

// TestInBrowser renders reports in a browser: nothing is executed or loaded, every drawing has a size
// and legible texts, and nothing is wider than the window, on a desktop and on a phone, with light and
// dark colors.
func TestInBrowser(t *testing.T) {
	ctx := startBrowser(t)
	for name, r := range map[string]*result.Result{
		"20 nodes":      sample(t, 2, 3, 5, 20),
		"1,500 nodes":   sample(t, 2, 6, 3, 1500),
		"hostile names": resultWithPrefix(t, hostile[2]+hostile[0]),
		"long names":    resultWithPrefix(t, strings.Repeat("long-name-", 20)),
		"wide names":    resultWithPrefix(t, strings.Repeat("W", 120)),
		"one profile":   sample(t, 1, 1, 1, 3),
		"one seed":      sample(t, 1, 2, 1, 20),
		"empty":         emptyResult(),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.html")
			if err := os.WriteFile(file, []byte(write(t, r)), 0o600); err != nil {
				t.Fatal(err)
			}
			address := (&url.URL{Scheme: "file", Path: file}).String()
			tested := windows
			if name != "20 nodes" {
				tested = windows[:2]
			}
			for _, w := range tested {
				t.Run(w.name, func(t *testing.T) { w.check(t, ctx, address) })
			}
		})
	}
}

// check opens a page, checks its layout, its console and its requests, and returns the layout.
func (w window) check(t *testing.T, ctx context.Context, address string) layout {
	tab, closeTab := chromedp.NewContext(ctx)
	defer closeTab()
	messages := chromedp.Console(tab)
	var requested requests
	if err := requested.listen(tab); err != nil {
		t.Fatal(err)
	}
	limited, cancel := context.WithTimeout(tab, browser.Timeout)
	defer cancel()
	if err := w.open(limited, address); err != nil {
		t.Fatal(err)
	}
	browser.ExpectFirstPaint(t, limited, t.Name())
	for _, violation := range browser.Violations(t, limited) {
		t.Error(violation)
	}
	screenshot, err := chromedp.Run(limited, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	keepScreenshot(t, "", screenshot)
	image, err := png.Decode(bytes.NewReader(screenshot))
	if err != nil || image.Bounds().Dx() != int(w.width) {
		t.Errorf("a screenshot of %v, want one %d wide (%v)", image.Bounds(), w.width, err)
	}
	got, err := readLayout(limited)
	if err != nil {
		t.Fatal(err)
	}
	if got.Drawings == 0 {
		t.Error("the page has no drawings")
	}
	// The browser takes no screenshot of a very long page.
	if screenshot, err = chromedp.Run(limited, chromedp.FullScreenshot(100)); err == nil {
		keepScreenshot(t, "-unfolded", screenshot)
	}
	want := layout{
		Drawings:    got.Drawings,
		Wide:        []string{},
		Scrolling:   got.Scrolling,
		Narrow:      []string{},
		Rows:        []string{},
		Empty:       []string{},
		Clipped:     []string{},
		Overlapping: []string{},
		LowContrast: []string{},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	// The marker follows all messages of the page.
	const end = "end of messages"
	if _, err := chromedp.Run(limited, chromedp.Evaluate[chromedp.Void](`console.log("`+end+`")`)); err != nil {
		t.Fatal(err)
	}
	for message, err := range messages {
		if err != nil {
			t.Fatal(err)
		}
		if message.Text == end {
			break
		}
		t.Error("message in the console:", message)
	}
	if got := requested.list(); !slices.Equal(got, []string{address}) {
		t.Errorf("requested %q, want only the page", got)
	}
	return got
}

// keepScreenshot writes a screenshot to the folder in PLIMSOLL_REPORTS for visual inspection.
func keepScreenshot(t *testing.T, suffix string, screenshot []byte) {
	t.Helper()
	if folder := os.Getenv("PLIMSOLL_REPORTS"); folder != "" {
		if err := os.WriteFile(filepath.Join(folder, fileName(t)+suffix+".png"), screenshot, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLayoutFindsFaults checks that the layout script finds each fault in a page that has all of them.
func TestLayoutFindsFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.html")
	if err := os.WriteFile(file, []byte(`<!doctype html><html><body style="background:#fff">
<script>window.executed=1</script><p onclick="x()" style="color:#ccc">faint</p>
<svg width="0" height="0"></svg><svg viewBox="0 0 100 20" width="100" height="20"><text x="0" y="15">one</text><text x="2" y="15">two</text><text x="95" y="15">three</text></svg>
<details><summary>s</summary><div style="width:3000px">wide</div></details><img src="nowhere.png" alt="">
<table><tr style="display:flex"><td>row</td></tr></table><table><tbody><tr><th>r</th></tr></tbody></table></body></html>`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := startBrowser(t)
	limited, cancel := context.WithTimeout(ctx, browser.Timeout)
	defer cancel()
	var requested requests
	if err := requested.listen(ctx); err != nil {
		t.Fatal(err)
	}
	if err := windows[0].open(limited, (&url.URL{Scheme: "file", Path: file}).String()); err != nil {
		t.Fatal(err)
	}
	got, err := readLayout(limited)
	if err != nil {
		t.Fatal(err)
	}
	if got.Overflow < 1000 || len(got.Wide) == 0 || len(got.Rows) != 1 || len(got.Narrow) != 1 || got.Scripts != 1 || got.Handlers != 1 ||
		!got.Executed || len(requested.list()) != 2 || got.Drawings != 2 || len(got.Empty) != 1 || len(got.Clipped) != 1 ||
		len(got.Overlapping) != 1 || len(got.LowContrast) != 1 {
		t.Errorf("%+v, requested %q", got, requested.list())
	}
}

// TestRecordedInBrowser renders the report that plimsoll compare writes for a recording, with the error of its backtest, in
// all windows.
func TestRecordedInBrowser(t *testing.T) {
	folder := t.TempDir()
	plimsoll, file := filepath.Join(folder, "plimsoll"), filepath.Join(folder, "report.html")
	if err := program.Build(t.Context(), project, plimsoll, "./cmd/plimsoll"); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := program.Run(t, plimsoll, "compare", "--profile=default", "--profile=limits", "--profile=predicted", "--seeds=4",
		"--recording="+filepath.Join(project, "examples", "recording", "week.plrec"), "--report="+file)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, []byte("Error of the model")) {
		t.Error("the report does not state the error of the backtest")
	}
	ctx := startBrowser(t)
	for _, w := range windows {
		t.Run(w.name, func(t *testing.T) {
			got := w.check(t, ctx, (&url.URL{Scheme: "file", Path: file}).String())
			if w.width >= 1024 && len(got.Scrolling) > 0 {
				t.Errorf("tables are wider than the page: %q", got.Scrolling)
			}
		})
	}
}
