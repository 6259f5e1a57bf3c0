package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestFilesAreUpToDate checks that the files in the chart are those that dashboardgen generates.
func TestFilesAreUpToDate(t *testing.T) {
	folder := filepath.Join("..", "..", "charts", "plimsoll", "files", "dashboards")
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) != len(dashboards) {
		t.Errorf("%d files for %d dashboards: %v", len(files), len(dashboards), err)
	}
	for _, d := range dashboards {
		want, err := encode(d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(folder, d.name+".json"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: make generate would change it: %v", d.name, err)
		}
	}
}
