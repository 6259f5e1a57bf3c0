package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// external matches what a picture must not have: scripts, and anything that is loaded.
var external = regexp.MustCompile(`(?i)<script|\son\w+=|href|url\(|@import|<image|<foreignObject|NaN|Inf\b|%!`)

// check expects that a picture is well-formed, and loads and executes nothing.
func check(t *testing.T, name, picture string) {
	t.Helper()
	if found := external.FindString(picture); found != "" {
		t.Errorf("%s: found %q", name, found)
	}
	for decoder := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// TestDraw reads the data of a dashboard from a server whose labels are hostile, and draws it: the picture has the panels
// with data, the color of the threshold, and the units.
func TestDraw(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query().Get("query"); query {
		case `up{job=~".*"}[10s]`:
			_, _ = io.WriteString(w, `{"data": {"result": [
				{"metric": {"le": "1", "name": "<script>"}, "values": [[100, "2"], [101, "NaN"], [109, "3"]]},
				{"metric": {"le": "2", "name": "b"}, "values": [[100, "5"], [109, "1610612736"]]}]}}`)
		case "none":
			_, _ = io.WriteString(w, `{"data": {"result": []}}`)
		case "wrong":
			_, _ = io.WriteString(w, `{"error": "parse error"}`)
		default:
			t.Errorf("query %s", query)
		}
	}))
	defer server.Close()
	wrong := dashboard{Panels: []*panel{{Targets: []struct{ Expr, LegendFormat string }{{Expr: "wrong"}}}}}
	if err := wrong.read(
		t.Context(),
		server.URL,
		time.Unix(100, 0),
		time.Unix(110, 0),
	); err == nil ||
		err.Error() != "panel : wrong: parse error" {
		t.Errorf("error %v", err)
	}
	const panels = `{"Title": "Test", "Panels": [
		{"Title": "value", "Type": "stat", "FieldConfig": {"Defaults": {"Unit": "percentunit", "Thresholds": {"Steps": [{"Color": "red", "Value": 2}]}}},
			"Targets": [{"Expr": "up{job=~\"$job\"}[$__rate_interval]", "LegendFormat": "{{name}}"}]},
		{"Title": "lines", "Type": "timeseries", "FieldConfig": {"Defaults": {"Unit": "bytes"}},
			"Targets": [{"Expr": "up{job=~\"$job\"}[$__rate_interval]", "LegendFormat": "{{name}} x"}]},
		{"Title": "map", "Type": "heatmap", "Targets": [{"Expr": "up{job=~\"$job\"}[$__rate_interval]", "LegendFormat": "{{le}}"}]},
		{"Title": "absent", "Type": "timeseries", "Targets": [{"Expr": "none"}]}]}`
	var d dashboard
	if err := json.Unmarshal([]byte(panels), &d); err != nil {
		t.Fatal(err)
	}
	if err := d.read(t.Context(), server.URL, time.Unix(100, 0), time.Unix(110, 0)); err != nil {
		t.Fatal(err)
	}
	drawn := draw(&d)
	check(t, "test", drawn)
	for want, n := range map[string]int{
		`class="value red"`: 1, ">300 %<": 1, "&lt;script&gt; x": 1, "GiB": 4, ">absent<": 0, `class="heat"`: 4,
	} {
		if got := strings.Count(drawn, want); n == 0 && got > 0 || n > 0 && got < n {
			t.Errorf("%q is in the picture %d times, want %d", want, got, n)
		}
	}
	// The line of the first series has a gap of 9 s.
	if got := strings.Count(path(d.Panels[1].Series[0].Points, scale{}, scale{}), "M"); got != 2 {
		t.Errorf("a line with %d parts, want 2", got)
	}
}

// scale is a scale on which every value is its own position.
type scale struct{}

// At implements positions.
func (scale) At(v float64) float64 { return v }

// TestBuckets checks the counts of buckets: 2 at most 1; 5-2 = 3, later 5-4 = 1, at most 2. The highest bucket is empty.
func TestBuckets(t *testing.T) {
	rows, highest := buckets([]series{
		{"+Inf", []point{{0, 5}, {1, 5}}}, {"2", []point{{0, 5}, {1, 5}}}, {"1", []point{{0, 2}, {1, 4}}},
	})
	want := []series{{"1", []point{{0, 2}, {1, 4}}}, {"2", []point{{0, 3}, {1, 1}}}}
	if diff := cmp.Diff(want, rows); diff != "" || highest != 4 {
		t.Errorf("highest %v: %s", highest, diff)
	}
}
