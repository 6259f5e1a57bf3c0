package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/lab/experiment/scenarios"
)

// TestGenerate has two scenarios with eight seeds. With best-effort pods the default profile
// has 100 minutes, the oracle 20 and predicted 28: a gain of 72 of 80, 90 %; crane has 50 and koordinator 40. Without, the default
// profile has 50, the oracle 10, predicted 60, which is -25 % of the gain of 40, crane 30 and koordinator 60.
func TestGenerate(t *testing.T) {
	from, folder := t.TempDir(), t.TempDir()
	overload := func(before, predicted, crane, koordinator, oracle float64) map[string][]float64 {
		all := map[string][]float64{}
		for range 8 {
			for name, minutes := range map[string]float64{
				"default": before, "predicted": predicted, "crane": crane, "koordinator": koordinator, scenarios.Oracle: oracle,
			} {
				all[name] = append(all[name], minutes)
			}
		}
		return all
	}
	writeScenario(t, from, "google-stay-be10", overload(100, 28, 50, 40, 20))
	writeScenario(t, from, "google-stay-be0", overload(50, 60, 30, 60, 10))
	readme, err := os.ReadFile("../results/README.md")
	if err != nil {
		t.Fatal(err)
	}
	const other = "# Page\n<!-- results: sums -->\nold\n<!-- end of results -->\nText.\n"
	files := map[string]string{"README.md": string(readme), "page.md": other}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(folder, "page.md")
	if err := generate(from, folder, page); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| overload, node minutes: worse than default in no scenario, at 95 % after Holm's correction | 1 of 2 | no |",
		"| overload, with best-effort pods: at most 0.5 times the best other formula, koordinator | 0.70 | no |",
		"| overload, without best-effort pods: at most 0.85 times the best other formula, crane | 2.00 | no |",
		"| share of the oracle's gain, with best-effort pods: at least 90 % | 90 % | yes |",
		"| share of the oracle's gain, without best-effort pods: at least 60 % | -25 % | no |",
		"| overload, node minutes | 1 / 0 / 1 | 2 / 0 / 0 | 1 / 0 / 1 | 2 / 0 / 0 |",
		"| google-stay-be10 | 100 | 40 (koordinator) | 28 | 20 | 90 % | −72 [−72, −72] | **better** (0.008) |",
		"| google-stay-be0 | 50 | 30 (crane) | 60 | 10 | -25 % | +10 [+10, +10] | _worse_ (0.008) |",
		"| Google | 2 | 150 | 80 (crane) | 88 | 30 | 0.59 | 52 % |", // 62 of 120
		"| google-stay-be0 | 60 | 50 | 30 (crane) |\n\n1 of 2 scenarios.",
		"| with best-effort pods | 90 % | 63 % | 75 % | 100 % |",
		"| planetlab-churn-be10 | not run | | | | | | |",
		"2 of 27 published scenarios, each with 5 profiles and 8 seeds.",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q in\n%s", want, text)
		}
	}
	kept := strings.SplitAfter(string(readme), marker("ablations"))[1]
	if !strings.Contains(string(text), kept[:strings.Index(kept, endMarker)]) {
		t.Error("the table of the parts of the model, which were not run, was changed")
	}
	got, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(got), "# Page\n<!-- results: sums -->\n| overload minutes") ||
		!strings.HasSuffix(string(got), "|\n<!-- end of results -->\nText.\n") {
		t.Errorf("%s, %v", got, err)
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

// TestWithoutOracle verifies the tables of results without an oracle, and of an oracle that gains nothing.
func TestWithoutOracle(t *testing.T) {
	for name, test := range map[string]struct {
		oracle []float64
		want   string
	}{
		"no oracle":      {nil, "| 10 | 20 (crane) | 5 | - | - |"},
		"nothing gained": {[]float64{10, 10}, "| 10 | 20 (crane) | 5 | 10 | - |"},
	} {
		folder := t.TempDir()
		overload := map[string][]float64{"default": {10, 10}, "predicted": {5, 5}, "crane": {20, 20}, "koordinator": {30, 30}}
		if test.oracle != nil {
			overload[scenarios.Oracle] = test.oracle
		}
		writeScenario(t, folder, "bitbrains-churn-be30", overload)
		e, err := read(folder, scenarios.Published)
		if err != nil {
			t.Fatal(err)
		}
		var table strings.Builder
		if err := e.scenarioTable(&table); err != nil ||
			!strings.Contains(table.String(), fmt.Sprintf("| bitbrains-churn-be30 %s", test.want)) {
			t.Errorf("%s: %v\n%s", name, err, &table)
		}
	}
}
