package whatif

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// fileName is that of what a test keeps.
func fileName(t *testing.T) string { return strings.NewReplacer("/", "-", ",", "").Replace(t.Name()) }

func write(t *testing.T, r *result.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	// For those who want to look at it.
	if folder := os.Getenv("PLIMSOLL_REPORTS"); folder != "" {
		if err := os.WriteFile(filepath.Join(folder, fileName(t)+".html"), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// text reads a page to its end, as strictly as if it were XML, and returns the text
// of it. Every element that is begun is ended.
func text(t *testing.T, page string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	var b strings.Builder
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		switch v := token.(type) {
		case xml.CharData:
			b.Write(v)
		case xml.StartElement:
			if v.Name.Local == "script" {
				t.Error("there is a script")
			}
			for _, a := range v.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "src" || a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#") {
					t.Errorf("<%s %s=%q>", v.Name.Local, a.Name.Local, a.Value)
				}
			}
		default:
		}
	}
}

var external = regexp.MustCompile(`(?i)https?:|url\(|@import|<link|<script|NaN|Inf\b|ZgotmplZ`)

// The page of a large cluster: everything is there, nothing comes from elsewhere,
// what the input says is text, the size is bounded, and it is the same again.
func TestLarge(t *testing.T) {
	r := sample(t, 4, 7, 5, 1500)
	page := write(t, r)
	t.Logf("%d bytes", len(page))
	if len(page) > MaxSize {
		t.Errorf("%d bytes, want at most %d", len(page), MaxSize)
	}
	if found := external.FindString(page); found != "" {
		t.Errorf("found %q", found)
	}
	read := text(t, page)
	for _, named := range result.CommonFigures() {
		if !strings.Contains(read, named.Title()) {
			t.Errorf("%s is not there", named.Title())
		}
	}
	for _, want := range append(slices.Clone(r.Profiles), r.Assumed...) {
		if !strings.Contains(read, want) {
			t.Errorf("%q is not there", want)
		}
	}
	for _, want := range []string{"Insufficient cpu", "Clearly better", "Clearly worse", "interval", "ratio=4", "usage cpu bursts, memory beta", "In short", "Nodes overloaded", "seeds: 5, from 1 to 5"} {
		if !strings.Contains(read, want) {
			t.Errorf("%q is not there", want)
		}
	}
	if again := write(t, r); again != page {
		t.Error("the same result gives other bytes")
	}
	// What is seen is all there; of what it is drawn from some is left out.
	for _, title := range []string{"Every node", "Over time", "What nodes use, and the beta distribution", "Where pods went, and why"} {
		if n := strings.Count(page, title); n != len(r.Scenarios) {
			t.Errorf("%q is there %d times, want it in every scenario", title, n)
		}
	}
	if !strings.Contains(page, keeps[1].without) {
		t.Error("it does not say what is left out")
	}
}

// The largest what-if that the documentation speaks of: its report is whole but for
// raw data and for where pods went, which it still has for the first scenario.
func TestLargest(t *testing.T) {
	r := sample(t, 12, 6, 10, 1500)
	page := write(t, r)
	t.Logf("1,500 nodes, 6 profiles, 10 seeds, 12 scenarios: %d bytes, at most %d", len(page), MaxSize)
	if len(page) > MaxSize {
		t.Errorf("%d bytes, want at most %d", len(page), MaxSize)
	}
	if n := strings.Count(page, "What nodes use, and the beta distribution"); n != 12 {
		t.Errorf("what nodes use is there %d times, want it in every scenario", n)
	}
	if !strings.Contains(page, "Where pods went, and why") {
		t.Error("it is nowhere shown where pods went")
	}
}

// Raw data is the whole result.
func TestRawData(t *testing.T) {
	r := sample(t, 1, 2, 3, 40)
	page := write(t, r)
	_, rest, _ := strings.Cut(page, `<pre id="result">`)
	raw, _, ok := strings.Cut(rest, `</pre>`)
	want, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if !ok || raw != string(want) {
		t.Errorf("raw data of %d bytes, want %d", len(raw), len(want))
	}
}

// What does not fit is left out, the least important first, and the page says so.
func TestLeftOut(t *testing.T) {
	r := sample(t, 2, 3, 4, 1500)
	last := math.MaxInt
	for _, size := range []int{5 << 20, 300 << 10, 200 << 10, 120 << 10, 100 << 10} {
		var b bytes.Buffer
		if err := writeWithin(&b, r, size); err != nil {
			t.Fatal(err)
		}
		text(t, b.String())
		t.Logf("within %d: %d", size, b.Len())
		if b.Len() > size || b.Len() > last {
			t.Errorf("%d bytes, want at most %d", b.Len(), size)
		}
		if said := strings.Contains(b.String(), "to keep the report small"); said != (size < 5<<20) {
			t.Errorf("within %d it says that something is left out: %v", size, said)
		}
		last = b.Len()
	}
}

// One profile is shown as it is, without differences.
func TestSimulate(t *testing.T) {
	read := text(t, write(t, sample(t, 1, 1, 1, 10)))
	if strings.Contains(read, "verdict") || strings.Contains(read, "Clearly") {
		t.Error("there is a verdict on nothing")
	}
}

// With one seed there is no verdict, and the page says why.
func TestOneSeed(t *testing.T) {
	read := text(t, write(t, sample(t, 1, 2, 1, 10)))
	if !strings.Contains(read, "a difference may be chance") || strings.Contains(read, "Clearly") {
		t.Error("one seed is taken for certain")
	}
}

func TestInterrupted(t *testing.T) {
	r := sample(t, 1, 2, 3, 10)
	r.Interrupted = true
	p := r.Scenarios[0].Profiles
	p[0].Runs[2].Interrupted = true
	p[1].Runs = p[1].Runs[:0]
	if err := r.Scenarios[0].Compare(); err != nil {
		t.Fatal(err)
	}
	read := text(t, write(t, r))
	for _, want := range []string{"Interrupted.", "Of 6 runs, 1 were interrupted and 3 not begun", "1 interrupted", "No pair of runs went to its end"} {
		if !strings.Contains(read, want) {
			t.Errorf("%q is not there", want)
		}
	}
}

// A result without anything gives a page, too.
func TestEmpty(t *testing.T) {
	text(t, write(t, &result.Result{}))
	text(t, write(t, &result.Result{Profiles: []string{"a", "b"}, Scenarios: []result.Scenario{{Profiles: []result.Profile{{Name: "a"}, {Name: "b"}}}}}))
}
