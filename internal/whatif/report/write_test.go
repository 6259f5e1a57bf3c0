package report

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

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// fileName returns the name of the files that a test keeps.
func fileName(t *testing.T) string { return strings.NewReplacer("/", "-", ",", "").Replace(t.Name()) }

// emptyResult returns a result with two profiles and without runs.
func emptyResult() *result.Result {
	return &result.Result{Profiles: []string{"a", "b"}, Scenario: result.Scenario{Profiles: []result.Profile{{Name: "a"}, {Name: "b"}}}}
}

// write returns the report of a result.
func write(t *testing.T, r *result.Result) string {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(t, Write(&b, r))
	// Keep the report for visual inspection.
	if folder := os.Getenv("PLIMSOLL_REPORTS"); folder != "" {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, fileName(t)+".html"), b.Bytes(), 0o644))
	}
	return b.String()
}

// text returns the text of a report. It fails unless the report is well-formed XML without scripts,
// event handlers and external references.
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
				t.Error("the report has a script")
			}
			for _, a := range v.Attr {
				external := a.Name.Local == "src" || a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#")
				if strings.HasPrefix(a.Name.Local, "on") || external {
					t.Errorf("<%s %s=%q>", v.Name.Local, a.Name.Local, a.Value)
				}
			}
		default:
		}
	}
}

var external = regexp.MustCompile(`(?i)https?:|url\(|@import|<link|<script|NaN|Inf\b|ZgotmplZ`)

// TestLarge checks the report of the largest what-if in the documentation: it omits only raw data, has no external references,
// its size is bounded, and the same result gives the same bytes.
func TestLarge(t *testing.T) {
	r := sample(t, 6, 10, 1500)
	page := write(t, r)
	t.Logf("%d bytes", len(page))
	if len(page) > maxSize {
		t.Errorf("%d bytes, want at most %d", len(page), maxSize)
	}
	if found := external.FindString(page); found != "" {
		t.Errorf("found %q", found)
	}
	read := text(t, page)
	for _, named := range result.CommonFigures() {
		if !strings.Contains(read, named.Title()) {
			t.Errorf("the report lacks %s", named.Title())
		}
	}
	for _, want := range append(slices.Clone(r.Profiles), r.Assumed...) {
		if !strings.Contains(read, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for _, want := range []string{
		"Insufficient cpu", "Clearly better", "Clearly worse", "interval", "ratio=4", "usage cpu=bursts:mean=0.4; memory=beta:mean=0.5",
		"Overloaded nodes", "seeds: 10, from 1 to 10",
	} {
		if !strings.Contains(read, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if again := write(t, r); again != page {
		t.Error("the report of the same result has different bytes")
	}
	// All charts are present; their raw data is omitted.
	if n := strings.Count(page, "Over time"); n != 1 {
		t.Errorf("%d times charts over time, want them once", n)
	}
	if !strings.Contains(page, details[1].omitted) {
		t.Error("the report does not state what it omits")
	}
}

// TestSmall checks that the report of a cluster of the size of the demo and of the examples is small.
func TestSmall(t *testing.T) {
	for _, nodes := range []int{6, 50} {
		// Names as of real pods, not with markup.
		raw, err := json.Marshal(sample(t, 2, 5, nodes))
		must.Succeed(t, err)
		escaped, err := json.Marshal(markup)
		must.Succeed(t, err)
		var r result.Result
		must.Succeed(t, json.Unmarshal(bytes.ReplaceAll(raw, escaped[1:len(escaped)-1], nil), &r))
		if page := write(t, &r); len(page) > maxSizeWithSeries {
			t.Errorf("%d nodes: %d bytes, want at most %d", nodes, len(page), maxSizeWithSeries)
		} else {
			t.Logf("%d nodes: %d bytes", nodes, len(page))
		}
	}
}

// TestRawData checks that the raw data is the complete result.
func TestRawData(t *testing.T) {
	r := sample(t, 1, 1, 10)
	page := write(t, r)
	_, rest, _ := strings.Cut(page, `<pre id="result">`)
	raw, _, ok := strings.Cut(rest, `</pre>`)
	want, err := json.Marshal(r)
	must.Succeed(t, err)
	if !ok || raw != string(want) {
		t.Errorf("raw data of %d bytes, want %d", len(raw), len(want))
	}
}

// TestWriteWithin checks that a report omits parts, the least important first, to fit into a size.
func TestWriteWithin(t *testing.T) {
	r := sample(t, 6, 4, 1500)
	last := math.MaxInt
	for _, size := range []int{5 << 20, 300 << 10, 200 << 10, 120 << 10, 100 << 10} {
		var b bytes.Buffer
		must.Succeed(t, Document{Result: r}.writeWithin(&b, size))
		text(t, b.String())
		t.Logf("within %d: %d", size, b.Len())
		if b.Len() > size || b.Len() > last {
			t.Errorf("%d bytes, want at most %d", b.Len(), size)
		}
		if !strings.Contains(b.String(), "to limit the size of the report") {
			t.Errorf("within %d: does not state that it omits something", size)
		}
		last = b.Len()
	}
}

// TestNoVerdicts checks that the report of one profile has no verdicts, and that the report of one seed states why it has none.
func TestNoVerdicts(t *testing.T) {
	read := text(t, write(t, sample(t, 1, 1, 10)))
	if strings.Contains(read, "verdict") || strings.Contains(read, "Clearly") {
		t.Error("the report has a verdict")
	}
	read = text(t, write(t, sample(t, 2, 1, 10)))
	if !strings.Contains(read, "a difference may be chance") || strings.Contains(read, "Clearly") {
		t.Error("the report has verdicts on one seed")
	}
}

// TestInterrupted checks that the report states which runs are incomplete.
func TestInterrupted(t *testing.T) {
	r := sample(t, 2, 3, 10)
	r.Interrupted = true
	p := r.Scenario.Profiles
	p[0].Runs[2].Interrupted = true
	p[1].Runs = p[1].Runs[:0]
	r.Scenario.Compare()
	r.Conclude()
	read := text(t, write(t, r))
	for _, want := range []string{"Interrupted.", "Of 6 runs, 1 was interrupted and 3 did not start", "1 interrupted", "No pair of runs with the same seed completed"} {
		if !strings.Contains(read, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

// TestEmpty checks that empty results have reports.
func TestEmpty(t *testing.T) {
	text(t, write(t, &result.Result{}))
	text(t, write(t, emptyResult()))
}
