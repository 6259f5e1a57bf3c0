package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLevels checks how many fewer nodes have the overload of the default at a lower level of use.
func TestLevels(t *testing.T) {
	from := t.TempDir()
	for use, overload := range map[string]map[string][]float64{
		"0.5": {"default": {10}, "predicted": {1}, "oracle": {0}},
		"0.6": {"default": {100}, "predicted": {100}, "oracle": {0}},
		"0.7": {"default": {900}, "predicted": {900}, "oracle": {100}},
	} {
		folder := filepath.Join(from, use)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		writeScenario(t, folder, "google-stay-be0", overload)
	}
	levels, err := readLevels(from)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := (&experiment{levels: levels}).levelTable(&table); err != nil {
		t.Fatal(err)
	}
	// predicted has 10 minutes in the middle of 1 and 100 (logarithms), at 0.55: 1 - 0.5/0.55 = 9 %; 100 at 0.6: 0 %.
	// oracle has 10 in the middle of 1 (for 0) and 100, at 0.65: 1 - 0.5/0.65 = 23 %; 100 at 0.7: 1 - 0.6/0.7 = 14 %; 900 at no level.
	const want = `| mean use of the requests | default | predicted | oracle | fewer nodes with predicted | with oracle |
|---|---:|---:|---:|---:|---:|
| 0.50 | 10 | 1 | 0 | 9 % | 23 % |
| 0.60 | 100 | 100 | 0 | 0 % | 14 % |
| 0.70 | 900 | 900 | 100 | 0 % | - |
`
	if table.String() != want {
		t.Errorf("got\n%s, want\n%s", &table, want)
	}
	if err := os.Mkdir(filepath.Join(from, "high"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := readLevels(
		from,
	); err == nil ||
		!strings.Contains(err.Error(), `invalid name "high": must be a level of use such as 0.45`) {
		t.Errorf("got %v", err)
	}
}
