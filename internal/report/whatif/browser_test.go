package whatif

import (
	"bytes"
	"context"
	_ "embed"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// chromium is Debian's name of the browser; `make test` installs it.
const chromium = "chromium"

// patience is how long a page may take to be read and drawn, on a busy machine.
const patience = 3 * time.Minute

// facts are what a page looks like to a browser.
type facts struct {
	// Overflow is by how many pixels the page is wider than its window.
	Overflow int `json:"overflow"`
	// Wide names what makes it so.
	Wide []string `json:"wide"`
	// Scripts and Handlers are elements and attributes that could run something;
	// Live is whether something has.
	Scripts  int  `json:"scripts"`
	Handlers int  `json:"handlers"`
	Live     bool `json:"live"`
	// Pictures is how many there are. Empty ones have no size, Cut ones have text
	// outside of them, Overlapping ones text over text.
	Pictures    int      `json:"pictures"`
	Empty       []string `json:"empty"`
	Cut         []string `json:"cut"`
	Overlapping []string `json:"overlapping"`
	// Faint texts have too little contrast to be read (under 4.5 to 1, the level AA
	// of WCAG 2.2).
	Faint []string `json:"faint"`
}

//go:embed testdata/facts.js
var readFacts string

// browser starts a browser that reaches no network, and ends with the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath(chromium)
	if err != nil {
		t.Fatalf("%v: the tests of the report want a browser; `make test` installs it", err)
	}
	profile := filepath.Join(t.TempDir(), "profile")
	// What a browser does by itself is not to outlive the test either.
	ctx, cancel := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(profile),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"),
	))
	t.Cleanup(func() {
		ending, done := context.WithTimeout(ctx, patience)
		defer done()
		if err := chromedp.Cancel(ending); err != nil {
			t.Error("the browser does not end:", err)
		}
		cancel()
		if left := processesOf(t, profile); len(left) > 0 {
			t.Errorf("processes of the browser stay: %q", left)
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal("starting the browser:", err)
	}
	return ctx
}

// processesOf returns the commands that name a folder.
func processesOf(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, file := range files {
		command, err := os.ReadFile(file)
		if err == nil && bytes.Contains(command, []byte(folder)) { // else it has ended
			all = append(all, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return all
}

// window is how a page is looked at.
type window struct {
	name   string
	width  int64
	scheme string
}

// windows are all of them. The dark ones differ in colours alone, so that one page
// of each kind tells.
var windows = []window{{"wide", 1280, "light"}, {"narrow", 400, "light"}, {"dark", 1280, "dark"}, {"narrow-dark", 400, "dark"}}

// open opens a page in a window, with all its details.
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

// requests are what a page asks for.
type requests struct {
	mu  sync.Mutex
	all []string
}

// listen notes from now on what is asked for in a tab.
func (r *requests) listen(tab context.Context) error {
	return chromedp.Listen(tab, func(event any) {
		if sent, ok := event.(*network.EventRequestWillBeSent); ok {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.all = append(r.all, sent.Request.URL)
		}
	})
}

// list returns what was asked for.
func (r *requests) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// look returns what the page looks like with all its details open.
func look(ctx context.Context) (facts, error) {
	return chromedp.Run(ctx, chromedp.Evaluate[facts](readFacts))
}

// Reports in a real browser: nothing runs, nothing is loaded, every picture has a
// size and texts that can be read, and nothing is wider than the window, of a
// computer or of a telephone, in daylight and in the dark.
func TestInBrowser(t *testing.T) {
	ctx := browser(t)
	for name, r := range map[string]*result.Result{
		"20 nodes":      sample(t, 2, 3, 5, 20),
		"1,500 nodes":   sample(t, 2, 6, 3, 1500),
		"hostile names": named(t, hostile[2]+hostile[0]),
		"long names":    named(t, strings.Repeat("long-name-", 20)),
		"wide names":    named(t, strings.Repeat("W", 120)),
		"one profile":   sample(t, 1, 1, 1, 3),
		"empty":         {Profiles: []string{"a", "b"}, Scenarios: []result.Scenario{{Profiles: []result.Profile{{Name: "a"}, {Name: "b"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.html")
			if err := os.WriteFile(file, []byte(write(t, r)), 0o600); err != nil {
				t.Fatal(err)
			}
			address := (&url.URL{Scheme: "file", Path: file}).String()
			looked := windows
			if name != "20 nodes" {
				looked = windows[:2]
			}
			for _, w := range looked {
				t.Run(w.name, func(t *testing.T) { w.check(t, ctx, address) })
			}
		})
	}
}

// check opens a page and says what is wrong with it.
func (w window) check(t *testing.T, ctx context.Context, address string) {
	tab, closeTab := chromedp.NewContext(ctx)
	defer closeTab()
	messages := chromedp.Console(tab)
	var asked requests
	if err := asked.listen(tab); err != nil {
		t.Fatal(err)
	}
	limited, cancel := context.WithTimeout(tab, patience)
	defer cancel()
	if err := w.open(limited, address); err != nil {
		t.Fatal(err)
	}
	shot, err := chromedp.Run(limited, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	keepPicture(t, shot)
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil || picture.Bounds().Dx() != int(w.width) {
		t.Errorf("a screenshot of %v, want one %d wide (%v)", picture.Bounds(), w.width, err)
	}
	got, err := look(limited)
	if err != nil {
		t.Fatal(err)
	}
	if got.Pictures == 0 {
		t.Error("there are no pictures")
	}
	want := facts{Pictures: got.Pictures, Wide: []string{}, Empty: []string{}, Cut: []string{}, Overlapping: []string{}, Faint: []string{}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	// The page has said all that it had to say before this.
	const end = "that was all"
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
		t.Error("the console says:", message)
	}
	if got := asked.list(); !slices.Equal(got, []string{address}) {
		t.Errorf("asked for %q, want the page alone", got)
	}
}

// keepPicture keeps a screenshot for those who want to look at it.
func keepPicture(t *testing.T, picture []byte) {
	t.Helper()
	if folder := os.Getenv("PLIMSOLL_REPORTS"); folder != "" {
		if err := os.WriteFile(filepath.Join(folder, fileName(t)+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The facts find what is wrong: a page on which everything is.
func TestFactsFindFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.html")
	if err := os.WriteFile(file, []byte(`<!doctype html><html><body style="background:#fff">
<script>window.live=1</script><p onclick="x()" style="color:#ccc">faint</p>
<svg width="0" height="0"></svg><svg viewBox="0 0 100 20" width="100" height="20"><text x="0" y="15">one</text><text x="2" y="15">two</text><text x="95" y="15">three</text></svg>
<details><summary>s</summary><div style="width:3000px">wide</div></details><img src="nowhere.png" alt=""></body></html>`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := browser(t)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var asked requests
	if err := asked.listen(ctx); err != nil {
		t.Fatal(err)
	}
	if err := windows[0].open(limited, (&url.URL{Scheme: "file", Path: file}).String()); err != nil {
		t.Fatal(err)
	}
	got, err := look(limited)
	if err != nil {
		t.Fatal(err)
	}
	if got.Overflow < 1000 || len(got.Wide) == 0 || got.Scripts != 1 || got.Handlers != 1 || !got.Live || len(asked.list()) != 2 ||
		got.Pictures != 2 || len(got.Empty) != 1 || len(got.Cut) != 1 || len(got.Overlapping) != 1 || len(got.Faint) != 1 {
		t.Errorf("%+v, asked for %q", got, asked.list())
	}
}
