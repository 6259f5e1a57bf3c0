package main

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Every case of the table runs with the code of this project, and its load comes from the service.
func TestOurCases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "workload.json")
	if err := writeWorkload(path); err != nil {
		t.Fatal(err)
	}
	w, err := readWorkload(path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(newWatcher())
	defer server.Close()
	operations := map[string]operation{}
	if err := addScores(t.Context(), w, server.URL, operations); err != nil {
		t.Fatal(err)
	}
	if err := addPlacements(w, operations); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		do := operations[c.ours]
		if do == nil {
			t.Errorf("%s: no case %s", c.text, c.ours)
			continue
		}
		for range 2 {
			if err := do(); err != nil {
				t.Errorf("%s: %v", c.ours, err)
			}
		}
	}
}

// TestSameMeasurement checks that both programs measure with the same code, and that it measures only known cases.
func TestSameMeasurement(t *testing.T) {
	var files [2][]byte
	for i, folder := range []string{".", "released"} {
		var err error
		if files[i], err = os.ReadFile(filepath.Join(folder, "measure.go")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("measure.go and released/measure.go differ: make them the same")
	}
	operations := map[string]operation{"a": func() error { return nil }, "failing": func() error { return errShort }}
	var out strings.Builder
	if err := serve(strings.NewReader("a\n"), &out, operations); err != nil {
		t.Fatal(err)
	}
	if took, err := strconv.ParseFloat(strings.TrimSpace(out.String()), 64); err != nil || took <= 0 {
		t.Errorf("%q: %v, want a time in nanoseconds", &out, err)
	}
	for name, want := range map[string]string{"other": `unknown case "other"`, "failing": "failing: " + errShort.Error()} {
		if err := serve(strings.NewReader(name+"\n"), io.Discard, operations); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestReplaceTable(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	for _, tc := range []struct{ text, want, err string }{
		{"a\n" + beginning + "old\n" + end + "b\n", "a\n" + beginning + "new\n" + end + "b\n", ""},
		{"a\n" + beginning, "", "found no lines"},
		{"a\n", "", "found no lines"},
	} {
		if err := os.WriteFile(page, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := replaceTable(page, "new\n")
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: %v, want %s", tc.text, err, tc.err)
			}
			continue
		}
		if raw, _ := os.ReadFile(page); err != nil || string(raw) != tc.want {
			t.Errorf("%q: %v, want %q", raw, err, tc.want)
		}
	}
}

func TestFormats(t *testing.T) {
	for ns, want := range map[float64]string{0.5: "0.50 ns", 83.4: "83 ns", 1234: "1.2 us", 123_400: "123 us", 7_712_000: "7.7 ms"} {
		if got := duration(ns); got != want {
			t.Errorf("%v: %s, want %s", ns, got, want)
		}
	}
	for _, tc := range []struct {
		times []float64
		want  float64
	}{{[]float64{3}, 3}, {[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 2, 3}, 2.5}} {
		if got := median(tc.times); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.times, got, tc.want)
		}
	}
}
