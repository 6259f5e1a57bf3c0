package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/scenarios"
)

// writeScenario writes the result of a scenario. Each profile has overload minutes for each seed.
func writeScenario(t *testing.T, folder, name string, overload map[string][]float64) {
	t.Helper()
	r := result.Result{APIVersion: result.APIVersion, Kind: result.Kind, Source: result.Source{Name: name, Nodes: 60, Pods: 900}}
	s := result.Scenario{Limits: "recorded", Usage: "recorded"}
	for _, profile := range []string{"default", "predicted", "crane", "koordinator", scenarios.Oracle} {
		if overload[profile] == nil {
			continue
		}
		r.Profiles = append(r.Profiles, profile)
		p := result.Profile{Name: profile}
		for i, minutes := range overload[profile] {
			run := result.Run{Seed: uint64(i + 1)}
			run.OverloadMinutes = minutes
			p.Runs = append(p.Runs, run)
		}
		s.Profiles = append(s.Profiles, p)
	}
	for i := range overload["default"] {
		r.Seeds = append(r.Seeds, uint64(i+1))
	}
	s.Compare()
	r.Scenario = s
	content, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".json"), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestTooFewSeeds has 4 seeds, with which the lowest probability is 1/16, so that nothing can be significant.
func TestTooFewSeeds(t *testing.T) {
	folder := t.TempDir()
	writeScenario(t, folder, "google-stay-be10", map[string][]float64{
		"default": {1, 2, 3, 4}, "predicted": {5, 6, 7, 8}, "crane": {1, 1, 1, 1}, "koordinator": {1, 1, 1, 1},
	})
	e, err := read(folder, scenarios.Published)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := e.targetTable(&table); err != nil || !strings.Contains(table.String(), "| 0 of 1 | too few seeds, 4 |") {
		t.Errorf("%v %s", err, &table)
	}
}

func TestGenerateErrors(t *testing.T) {
	folder := t.TempDir()
	if err := generate(folder, folder); err == nil || !strings.Contains(err.Error(), "found no results of published scenarios") {
		t.Errorf("an empty folder: %v", err)
	}
	one := map[string][]float64{"default": {1}, "predicted": {1}, "crane": {1}, "koordinator": {1}}
	two := map[string][]float64{"default": {1, 2}, "predicted": {1, 2}, "crane": {1, 2}, "koordinator": {1, 2}}
	writeScenario(t, folder, "google-stay-be10", one)
	writeScenario(t, folder, "google-stay-be30", two)
	if err := generate(folder, folder); err == nil || !strings.Contains(err.Error(), "as in the other results") {
		t.Errorf("results with different seeds: %v", err)
	}
	for page, want := range map[string]string{
		"":                                       "must have <!-- results: a --> once",
		"<!-- results: a -->":                    "must have <!-- end of results --> after",
		strings.Repeat("<!-- results: a -->", 2): "once",
	} {
		if _, err := replace(page, "a", "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", page, err, want)
		}
	}
}

// TestSummary verifies that docs/results.md has the simulated figures of lab/results: each row of its tables is a row of a table there.
func TestSummary(t *testing.T) {
	summary, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, page := range []string{"../results/README.md", "../results/predictors.md", "../results/autoscalers.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	rows := 0
	_, simulated, _ := strings.Cut(string(summary), "\n## Simulated")
	for line := range strings.Lines(simulated) {
		if strings.HasPrefix(line, "|") {
			rows++
			if !strings.Contains(string(all), line) {
				t.Errorf("lab/results lacks this row of docs/results.md: %s", line)
			}
		}
	}
	if rows < 15 {
		t.Errorf("found %d rows in docs/results.md", rows)
	}
}
