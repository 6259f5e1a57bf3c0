package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/baselines"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/scenarios"
)

// TestMain runs the processes of the runs: they are this program.
func TestMain(m *testing.M) {
	run := func() error { return engine.Register(baselines.Registry(baselines.Future{})) }
	serves := len(os.Args) == 2 && os.Args[1] == serveCommand
	if serves {
		run = func() error { return serve(context.Background(), os.Stdin, os.Stdout) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if serves {
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestRun runs one scenario with two profiles and a seed, and continues with the result in the folder.
func TestRun(t *testing.T) {
	folder := t.TempDir()
	arguments := []string{"-scenarios", "^static-be30-beta$", "-seeds", "1", "-profiles", "default,koordinator", folder}
	if err := start(t.Context(), arguments); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "static-be30-beta.json")
	r, err := readResult(file)
	if err != nil {
		t.Fatal(err)
	}
	profiles := r.Scenarios[0].Profiles
	if len(profiles) != 2 || r.Source.Pods != 900 || profiles[0].Figures["overloadMinutes"].Mean == 0 ||
		profiles[1].Figures["overloadMinutes"].Mean >= profiles[0].Figures["overloadMinutes"].Mean {
		t.Errorf("%+v", r)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := start(t.Context(), arguments); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(file); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the scenario was run again: %v", err)
	}
}

// TestProfiles verifies that a scheduler can be created from each profile.
func TestProfiles(t *testing.T) {
	all, err := readProfiles("")
	if err != nil {
		t.Fatal(err)
	}
	ablations, err := readProfiles(strings.Join(scenarios.Ablations, ","))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 4+len(scenarios.Baselines) || all[0].Name != "default" {
		t.Errorf("%d profiles", len(all))
	}
	for _, profile := range slices.Concat(all, ablations) {
		config, err := profile.Config()
		if err == nil {
			_, err = engine.New(t.Context(), engine.Cluster{}, engine.Options{Config: config})
		}
		if err != nil {
			t.Errorf("%s: %v", profile.Name, err)
		}
	}
}

func TestParse(t *testing.T) {
	for arguments, want := range map[string]string{
		"out":                               "published 1 10",
		"-quick out":                        "tuning 1001 2",
		"-quick -part all -seed 7 out":      "all 7 2",
		"-list":                             "published 1 10",
		"":                                  "found 0 arguments: must be the folder for the results",
		"a b":                               "found 2 arguments: must be the folder for the results",
		"-part half out":                    `-part: invalid value "half": must be published, tuning or all`,
		"-seeds 0 out":                      "-seeds: invalid value 0: must be at least 1",
		"-scenarios ( out":                  "-scenarios: error parsing regexp: missing closing ): `(`",
		"-profiles default,none.yaml -list": "published 1 10",
	} {
		o, err := parse(strings.Fields(arguments))
		got := fmt.Sprint(o.part, " ", o.seed, " ", o.seeds)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", arguments, got, want)
		}
	}
	if _, err := readProfiles(
		"default,none.yaml",
	); err == nil ||
		!strings.HasPrefix(err.Error(), "-profiles: open none.yaml: no such file") {
		t.Errorf("a profile that does not exist: %v", err)
	}
}

// TestSelected verifies that the scenarios on the trace are left out and named without its folder.
func TestSelected(t *testing.T) {
	o, err := parse([]string{"out"})
	if err != nil {
		t.Fatal(err)
	}
	chosen, missing := o.selected()
	if len(chosen) != 16 || len(missing) != 4 || !strings.HasPrefix(missing[0], "openb-") {
		t.Errorf("%d chosen, missing %v", len(chosen), missing)
	}
}

// TestThin keeps one of two blocks of two lines.
func TestThin(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "from"), filepath.Join(folder, "to")
	if err := os.WriteFile(from, []byte("header\n1\n2\n3\n4\n5\n6\n7"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := thin(from, to, 2, 2); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || string(got) != "header\n1\n2\n5\n6\n" {
		t.Errorf("%q, %v", got, err)
	}
	if err := thin(filepath.Join(folder, "none"), to, 2, 2); err == nil || !strings.HasPrefix(err.Error(), "-openb: ") {
		t.Errorf("a file that does not exist: %v", err)
	}
}
