//go:build foreign

package report

import (
	"bytes"
	"context"
	_ "embed"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/browser"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
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

// TestInBrowser renders reports in a browser: nothing is executed or loaded, every drawing has a size
// and legible texts, and nothing is wider than the window, on a desktop and on a phone, with light and
// dark colors.
func TestInBrowser(t *testing.T) {
	ctx := startBrowser(t)
	for name, r := range map[string]*result.Result{
		"20 nodes":      sample(t, 3, 5, 20),
		"1,500 nodes":   sample(t, 6, 3, 1500),
		"hostile names": resultWithPrefix(t, hostile[2]+hostile[0]),
		"long names":    resultWithPrefix(t, strings.Repeat("long-name-", 20)),
		"wide names":    resultWithPrefix(t, strings.Repeat("W", 120)),
		"one profile":   sample(t, 1, 1, 3),
		"one seed":      sample(t, 2, 1, 20),
		"empty":         emptyResult(),
	} {
		tested := browser.Windows
		if name != "20 nodes" { // the desktop and the phone; the other windows differ in colors and little else
			tested = []browser.Window{browser.Windows[0], browser.Windows[2]}
		}
		t.Run(name, func(t *testing.T) { check(t, ctx, tested, write(t, r)) })
	}
	t.Run("faults", func(t *testing.T) { checkFaults(t, ctx) })
	t.Run("recording", func(t *testing.T) { checkRecorded(t, ctx) })
}

// save writes a page to a file and returns its address.
func save(t *testing.T, page string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	must.Succeed(t, os.WriteFile(file, []byte(page), 0o600))
	return (&url.URL{Scheme: "file", Path: file}).String()
}

// check opens a page, checks its console, its requests, and its layout in windows, and returns the layouts.
func check(t *testing.T, ctx context.Context, windows []browser.Window, page string) map[browser.Window]layout {
	t.Helper()
	address := save(t, page)
	tab, closeTab := chromedp.NewContext(ctx)
	defer closeTab()
	messages := chromedp.Console(tab)
	var requested requests
	must.Succeed(t, requested.listen(tab))
	limited, cancel := context.WithTimeout(tab, browser.Timeout)
	defer cancel()
	windows[0].Open(t, limited, address)
	browser.ExpectFirstPaint(t, limited, t.Name())
	for _, w := range windows {
		w.Resize(t, limited)
		browser.ExpectUsable(t, limited, w, t.Name())
		if width := browser.Evaluate[int64](t, limited, "innerWidth"); width != w.Width {
			t.Errorf("the window is %d pixels wide, want %d", width, w.Width)
		}
	}
	layouts := map[browser.Window]layout{}
	for _, w := range windows {
		w.Resize(t, limited)
		got := browser.Evaluate[layout](t, limited, layoutScript) // opens all details
		browser.KeepScreenshot(t, limited, w, t.Name()+"-unfolded")
		want := layout{
			Drawings: got.Drawings, Scrolling: got.Scrolling, Wide: []string{}, Narrow: []string{}, Rows: []string{},
			Empty: []string{}, Clipped: []string{}, Overlapping: []string{}, LowContrast: []string{},
		}
		if got.Drawings == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", w, got)
		}
		layouts[w] = got
	}
	// The marker follows all messages of the page.
	const end = "end of messages"
	_, err := chromedp.Run(limited, chromedp.Evaluate[chromedp.Void](`console.log("`+end+`")`))
	must.Succeed(t, err)
	for message, err := range messages {
		must.Succeed(t, err)
		if message.Text == end {
			break
		}
		t.Error("message in the console:", message)
	}
	if got := requested.list(); !slices.Equal(got, []string{address}) {
		t.Errorf("requested %q, want only the page", got)
	}
	return layouts
}

// checkFaults checks that the layout script finds each fault in a page that has all of them.
func checkFaults(t *testing.T, ctx context.Context) {
	address := save(t, `<!doctype html><html><body style="background:#fff">
<script>window.executed=1</script><p onclick="x()" style="color:#ccc">faint</p>
<svg width="0" height="0"></svg><svg viewBox="0 0 100 20" width="100" height="20"><text x="0" y="15">one</text><text x="2" y="15">two</text><text x="95" y="15">three</text></svg>
<details><summary>s</summary><div style="width:3000px">wide</div></details><img src="nowhere.png" alt="">
<table><tr style="display:flex"><td>row</td></tr></table><table><tbody><tr><th>r</th></tr></tbody></table></body></html>`)
	tab, closeTab := chromedp.NewContext(ctx)
	defer closeTab()
	var requested requests
	must.Succeed(t, requested.listen(tab))
	limited, cancel := context.WithTimeout(tab, browser.Timeout)
	defer cancel()
	browser.Windows[0].Open(t, limited, address)
	got := browser.Evaluate[layout](t, limited, layoutScript)
	if got.Overflow < 1000 || len(got.Wide) == 0 || len(got.Rows) != 1 || len(got.Narrow) != 1 || got.Scripts != 1 || got.Handlers != 1 ||
		!got.Executed || len(requested.list()) != 2 || got.Drawings != 2 || len(got.Empty) != 1 || len(got.Clipped) != 1 ||
		len(got.Overlapping) != 1 || len(got.LowContrast) != 1 {
		t.Errorf("%+v, requested %q", got, requested.list())
	}
}

// checkRecorded checks the report that plimsoll compare writes for a recording, with the error of its backtest.
func checkRecorded(t *testing.T, ctx context.Context) {
	file := filepath.Join(t.TempDir(), "report.html")
	_, stderr, code := program.Run(
		t,
		program.Path(t, "plimsoll"),
		"compare",
		"--profile=default",
		"--profile=limits",
		"--profile=predicted",
		"--seeds=4",
		"--recording="+filepath.Join(project, "examples", "recording", "week.ndjson.gz"),
		"--report="+file,
	)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	page, err := os.ReadFile(file)
	must.Succeed(t, err)
	if !bytes.Contains(page, []byte("Error of the model")) {
		t.Error("the report does not state the error of the backtest")
	}
	for w, got := range check(t, ctx, browser.Windows[:4], string(page)) { // one dark window: another page has all
		if w.Width >= 1024 && len(got.Scrolling) > 0 {
			t.Errorf("%s: tables are wider than the page: %q", w, got.Scrolling)
		}
	}
}
