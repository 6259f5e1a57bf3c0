package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// resolved reads a schema of the project.
func resolved(t *testing.T, file string) *jsonschema.Resolved {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	r, err := schema.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return r
}

var header = regexp.MustCompile(`(?m)^# yaml-language-server: \$schema=(\S+)$`)

// TestExamples checks each example that names a schema by it, and that the schemas reject a misspelled field.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := header.FindSubmatch(raw)
		if found == nil {
			continue
		}
		checked++
		schema := resolved(t, filepath.Join(filepath.Dir(file), string(found[1])))
		var document any
		if err := yaml.Unmarshal(raw, &document); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := schema.Validate(document); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if checked < 6 {
		t.Errorf("%d examples name a schema, want the profiles and the slack policy", checked)
	}
}

// TestMisspelled checks that fields that do not exist, and values of another type, are invalid.
func TestMisspelled(t *testing.T) {
	const config = `{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [{"pluginConfig": [
		{"name": "LowRiskOverCommitment", "args": ARGS}]}]}`
	schema := resolved(t, "../../schemas/scheduler.json")
	for args, valid := range map[string]bool{
		`{"smoothingWindowSize": 5, "pollInterval": "30s"}`: true, `{"smoothingWindow": 5}`: false, `{"smoothingWindowSize": "5"}`: false,
	} {
		var document any
		if err := json.Unmarshal([]byte(strings.Replace(config, "ARGS", args, 1)), &document); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(document); (err == nil) != valid {
			t.Errorf("%s: %v, valid is %v", args, err, valid)
		}
	}
}

// TestDescriptions checks that fields have the comments of the Go types: of structs within lists and maps, and of embedded ones.
func TestDescriptions(t *testing.T) {
	for file, want := range map[string]string{
		"whatif":    "Profile is the name of the simulated profile, which should be the one that was in force.",
		"backtest":  "Error is the difference as a fraction of the measured value, nil if only that is 0.",
		"doctor":    "Message is the observation, with names and numbers.",
		"scheduler": "RiskLimitWeight is the weight of limit risk, in [0, 1]; load risk has the rest. The default is 0.5.",
	} {
		raw, err := os.ReadFile("../../schemas/" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), `"description": "`+want+`"`) {
			t.Errorf("%s.json lacks the description %q", file, want)
		}
	}
}

// TestBacktest checks that the document of a backtest, as it is printed, is valid by its schema.
func TestBacktest(t *testing.T) {
	raw, err := json.Marshal(&compare.BacktestResult{
		APIVersion: result.APIVersion, Kind: compare.Kind, Assumed: []string{"one"},
		Backtest: result.NewBacktest("default", result.Source{Pods: 1, UsageKnown: 1}, &result.Run{}, &result.Run{
			Outcome: result.Outcome{OverloadMinutes: 1}, Recorded: &result.Recorded{Placements: result.Placements{Same: 1}},
		}),
		Measured: result.Run{Reasons: map[string]int{}}, Simulated: result.Run{Reasons: map[string]int{"Insufficient cpu": 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	schema := resolved(t, "../../schemas/backtest.json")
	if err := schema.Validate(document); err != nil {
		t.Error(err)
	}
	document["mesured"] = document["measured"]
	if err := schema.Validate(document); err == nil {
		t.Error("a misspelled field is valid")
	}
}

// TestFilesAreCurrent checks that the schemas in the repository match the types.
func TestFilesAreCurrent(t *testing.T) {
	t.Chdir("../..")
	folder := t.TempDir()
	if err := write(folder); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) != 5 {
		t.Fatalf("%d schemas (%v)", len(files), err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("schemas", filepath.Base(file)))
		if diff := cmp.Diff(string(want), string(got)); diff != "" || err != nil {
			t.Errorf("%s is not up to date (make generate): %v\n%s", filepath.Base(file), err, diff)
		}
	}
}
