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
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/cluster"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/scenarios"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/usage"
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
		"-part generated out":               "generated 1 10",
		"-part half out":                    `-part: invalid value "half": must be published, tuning, all or generated`,
		"-usage none out":                   `-usage: found no folder "none": must be a folder with the public files, ` + usage.Sources,
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
	if _, err := readProfiles("default,none.yaml"); err == nil ||
		!strings.HasPrefix(err.Error(), "-profiles: open none.yaml: no such file") {
		t.Errorf("a profile that does not exist: %v", err)
	}
}

// TestSelected verifies that the scenarios on the trace and on real usage are left out and named without their folders.
func TestSelected(t *testing.T) {
	for arguments, want := range map[string]string{
		"out":                             "16 chosen, 31 missing: google-stay-be0",
		"-part generated out":             "16 chosen, 4 missing: openb-churn-beta",
		"-part generated -openb . out":    "20 chosen, 0 missing: ",
		"-part tuning -usage . out":       "43 chosen, 4 missing: openb-churn-bursts",
		"-usage . -scenarios be10$ out":   "9 chosen, 0 missing: ",
		"-scenarios ^bitbrains-churn out": "0 chosen, 3 missing: bitbrains-churn-be0",
	} {
		o, err := parse(strings.Fields(arguments))
		if err != nil {
			t.Fatal(err)
		}
		chosen, missing := o.selected()
		first := strings.Join(missing[:min(len(missing), 1)], "")
		if got := fmt.Sprintf("%d chosen, %d missing: %s", len(chosen), len(missing), first); got != want {
			t.Errorf("%s: %s, want %s", arguments, got, want)
		}
	}
}

// writePlanetLab writes two days of 40 virtual machines of 8 slices, of which each half has some. One slice in four is busy in the
// first half of the day, one in the second half.
func writePlanetLab(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, date := range []string{"20110303", "20110306"} {
		if err := os.Mkdir(filepath.Join(folder, date), 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			var b strings.Builder
			for step := range usage.PerDay {
				percent := 20 + (7*i+13*step)%30
				if busy := i % 4; busy < 2 && step/(usage.PerDay/2) == busy {
					percent += 50
				}
				fmt.Fprintln(&b, percent)
			}
			file := filepath.Join(folder, date, fmt.Sprintf("host_%d_net_site_s%d", i, i%8))
			if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

// TestRunReal runs a scenario on real usage: the oracle, which knows the usage, has less overload. It runs without the oracle, whose
// profile is not for generated usage, on a generated one.
func TestRunReal(t *testing.T) {
	files, folder := writePlanetLab(t), t.TempDir()
	run := func(scenarios string) error {
		return start(t.Context(), []string{
			"-usage", files, "-scenarios", scenarios, "-seeds", "1", "-profiles", "default,oracle", folder,
		})
	}
	if err := run("^(planetlab-stay-be30|static-be30-beta)$"); err != nil {
		t.Fatal(err)
	}
	r, err := readResult(filepath.Join(folder, "planetlab-stay-be30.json"))
	if err != nil {
		t.Fatal(err)
	}
	profiles := r.Scenarios[0].Profiles
	before, bound := profiles[0].Figures["overloadMinutes"].Mean, profiles[1].Figures["overloadMinutes"].Mean
	if len(profiles) != 2 || r.Source.Pods != cluster.Pods || r.Scenarios[0].Usage != "recorded" || bound >= before/2 {
		t.Errorf("%s: overload of %v and %v", line("planetlab-stay-be30", r), before, bound)
	}
	if r, err = readResult(filepath.Join(folder, "static-be30-beta.json")); err != nil || !slices.Equal(r.Profiles, []string{"default"}) {
		t.Errorf("generated usage: %v, %v", r, err)
	}
	want := "google-stay-be0: -usage " + files + ": found no files of google: the public files are " + usage.Sources
	if err := run("^google-stay-be0$"); err == nil || err.Error() != want {
		t.Errorf("without files: %v, want %s", err, want)
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
