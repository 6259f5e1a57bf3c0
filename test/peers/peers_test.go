package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
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
	watcher, err := newWatcher()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(watcher)
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
