package main

import (
	"encoding/json"
	"fmt"
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
	s := result.Scenario{Limits: "ratio=2", Usage: "cpu=beta:mean=0.7;memory=beta:mean=0.7"}
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
	r.Scenarios = []result.Scenario{s}
	content, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".json"), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// published returns the published scenarios of a family.
func published(family scenarios.Family) (names []string) {
	for _, s := range scenarios.All() {
		if s.Part == scenarios.Published && s.Is(family) {
			names = append(names, s.Name)
		}
	}
	return names
}

// TestGenerate has one scenario with best-effort pods and one without, with eight seeds. In the first scenario the default
// profile has 100 to 107 minutes, on average 103.5; predicted has a tenth of that, crane a half and koordinator a fifth. In the
// second scenario all profiles have 10 minutes but predicted, which has 11 to 18: the probability that all eight seeds are higher
// is 1/256, and 1/128 after Holm's correction over two scenarios.
func TestGenerate(t *testing.T) {
	from, folder := t.TempDir(), t.TempDir()
	first, second := map[string][]float64{}, map[string][]float64{}
	for i := range 8 {
		minutes := 100 + float64(i)
		for profile, factor := range map[string]float64{"default": 1, "predicted": 0.1, "crane": 0.5, "koordinator": 0.2} {
			first[profile] = append(first[profile], factor*minutes)
			second[profile] = append(second[profile], 10)
		}
		second["predicted"][i] = 11 + float64(i)
	}
	bestEffort, without := published(scenarios.BestEffort)[0], published(scenarios.NoBestEffort)[0]
	writeScenario(t, from, bestEffort, first)
	writeScenario(t, from, without, second)
	variants := filepath.Join(from, "variants")
	if err := os.Mkdir(variants, 0o700); err != nil {
		t.Fatal(err)
	}
	writeScenario(t, variants, "static-be10-beta", first)
	page, err := os.ReadFile("../results/README.md")
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "README.md"), page, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := generate(from, folder); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| overload, node minutes: worse than default in no scenario, at 95 % after Holm's correction | 1 of 2 | no |",
		"| overload (with best-effort pods): at most 0.15 of that of default | 0.10 | yes |",
		"| overload (without best-effort pods): at most 0.75 of that of default | 1.45 | no |", // 14.5 of 10
		"| overload (with best-effort pods): at most 0.7 of that of the best other scheduler, koordinator | 0.50 | yes |",
		"| with best-effort pods | 1 | 103.5 | 0.10 | 0.50 | 0.20 |",
		"| with best-effort pods | koordinator | 20.70 | 10.35 | 0.50 |",
		fmt.Sprintf("| %s | 10 | 14.50 | +4.500 [", without),
		"] | _worse_ (0.008) |",
		"| overload, node minutes | 1 / 0 / 1 | 1 / 1 / 0 | 1 / 1 / 0 |",
		"| churn-be0-differ | not run | | | |",
		"2 of 20 published scenarios, each with 4 profiles and 8 seeds.",
		fmt.Sprintf("| %s | 60, 900 |", bestEffort),
		"| `koordinator` | 0 | 20.70 |",
		"<!-- results: ablations -->\nNot run.\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q in\n%s", want, text)
		}
	}
	for _, name := range []string{"tables.md", "runs.csv"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The same results give the same page, and the parts between the tables stay.
	if err := generate(from, folder); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.ReadFile(filepath.Join(folder, "README.md")); string(again) != string(text) {
		t.Error("a second run changes the page")
	}
}

// TestTooFewSeeds has 4 seeds, with which the lowest probability is 1/16, so that nothing can be significant.
func TestTooFewSeeds(t *testing.T) {
	folder := t.TempDir()
	writeScenario(t, folder, published(scenarios.BestEffort)[0], map[string][]float64{
		"default": {1, 2, 3, 4}, "predicted": {5, 6, 7, 8}, "crane": {1, 1, 1, 1}, "koordinator": {1, 1, 1, 1},
	})
	e, err := readExperiment(folder, scenarios.Published)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := e.targetTable(&table); err != nil || !strings.Contains(table.String(), "| 0 of 1 | unknown: too few seeds, 4 |") {
		t.Errorf("%v %s", err, &table)
	}
}

func TestGenerateErrors(t *testing.T) {
	folder := t.TempDir()
	if err := generate(folder, folder); err == nil || !strings.Contains(err.Error(), "found no results of published scenarios") {
		t.Errorf("an empty folder: %v", err)
	}
	names := published(scenarios.BestEffort)
	one := map[string][]float64{"default": {1}, "predicted": {1}, "crane": {1}, "koordinator": {1}}
	two := map[string][]float64{"default": {1, 2}, "predicted": {1, 2}, "crane": {1, 2}, "koordinator": {1, 2}}
	writeScenario(t, folder, names[0], one)
	writeScenario(t, folder, names[1], two)
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

// TestSummary verifies that docs/results.md has the figures of lab/results: each row of its tables is a row of a table there.
func TestSummary(t *testing.T) {
	summary, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, page := range []string{"../results/README.md", "../results/predictors.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	rows := 0
	for line := range strings.Lines(string(summary)) {
		if strings.HasPrefix(line, "|") {
			rows++
			if !strings.Contains(string(all), line) {
				t.Errorf("lab/results lacks this row of docs/results.md: %s", line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("found %d rows in docs/results.md", rows)
	}
}
