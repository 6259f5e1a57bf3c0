package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
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

// TestGenerated runs two profiles on five generated clusters: predicted has at most the overload of default, and less if pods have no
// requests.
func TestGenerated(t *testing.T) {
	const (
		static = "nodes=60,pods=900,fill=0.95,over=3600,guaranteed=0.2"
		churn  = "nodes=60,pods=900,fill=0.9,churn=7200,life=3600,batch=0.3,guaranteed=0.2"
		mixed  = "nodes=60,shapes=16x64+32x128+64x256x8,zones=3,pods=900,replicas=5,fill=0.85,gpu=0.05,churn=7200,life=3600"
		differ = "cpu=beta:mean=0.7,cv=0.7,workload=0.6,between=0.1;memory=beta:mean=0.7,cv=0.5,workload=0.7,between=0.2"
	)
	profiles, err := readProfiles("default,predicted")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		generate, use string
		most          float64 // of the overload of default
	}{
		"static":                   {static, "beta:mean=0.85", 1},
		"static, 10 % best effort": {static + ",best-effort=0.1", "bursts:mean=0.7,max=6", 0.2},
		"static, 30 % best effort": {static + ",best-effort=0.3", differ, 0.1},
		"churn, 10 % best effort":  {churn + ",best-effort=0.1", "diurnal:mean=0.7,period=480,phases=0,workload-phases=1", 0.2},
		"mixed nodes":              {mixed, "beta:mean=0.85", 1},
	} {
		t.Run(name, func(t *testing.T) {
			job := compare.Job{
				Source: generate.Source{
					Source: recording.Source{Tail: tailSeconds}, Generate: test.generate, Usage: test.use,
				}, Seed: 1,
				Metrics: replay.DefaultMetrics,
			}
			var overload [2]float64
			for i := range overload {
				job.Profile = profiles[i]
				run, err := job.Run(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				overload[i] = run.OverloadMinutes
			}
			if overload[0] == 0 || overload[1] > test.most*overload[0] {
				t.Errorf("overload of %v with predicted, %v with default: want at most %v of it", overload[1], overload[0], test.most)
			}
		})
	}
}

// TestProfiles verifies that a scheduler can be created from each profile.
func TestProfiles(t *testing.T) {
	all, err := readProfiles("")
	if err != nil {
		t.Fatal(err)
	}
	ablations, err := readProfiles("without-history")
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
		"-usage . out":                          "published 1 10",
		"out":                                   `-usage: found no folder "": must be a folder with the public files, ` + usage.Sources,
		"-usage . -quick out":                   "tuning 1001 2",
		"-usage . -quick -part all -seed 7 out": "all 7 2",
		"-list":                                 "published 1 10",
		"-usage .":                              "found 0 arguments: must be the folder for the results",
		"-usage . a b":                          "found 2 arguments: must be the folder for the results",
		"-part half out":                        `-part: invalid value "half": must be published, tuning or all`,
		"-usage none out":                       `-usage: found no folder "none": must be a folder with the public files, ` + usage.Sources,
		"-usage . -seeds 0 out":                 "-seeds: invalid value 0: must be at least 1",
		"-usage . -scenarios ( out":             "-scenarios: error parsing regexp: missing closing ): `(`",
		"-profiles default,none.yaml -list":     "published 1 10",
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

// TestRun runs a scenario: the oracle, which knows the usage, has less overload. It continues with the result in the folder.
func TestRun(t *testing.T) {
	files, folder := writePlanetLab(t), t.TempDir()
	run := func(scenarios string) error {
		return start(t.Context(), []string{
			"-usage", files, "-scenarios", scenarios, "-seeds", "1", "-profiles", "default,oracle", folder,
		})
	}
	file := filepath.Join(folder, "planetlab-stay-be30.json")
	var written [2]time.Time
	for i := range written {
		if err := run("^planetlab-stay-be30$"); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		written[i] = info.ModTime()
	}
	if written[0] != written[1] {
		t.Error("the scenario was run again")
	}
	r, err := readResult(file)
	if err != nil {
		t.Fatal(err)
	}
	profiles := r.Scenario.Profiles
	before, bound := profiles[0].Figures["overloadMinutes"].Mean, profiles[1].Figures["overloadMinutes"].Mean
	if len(profiles) != 2 || r.Source.Pods != cluster.Pods || r.Scenario.Usage != "recorded" || bound >= before/2 {
		t.Errorf("%s: overload of %v and %v", line("planetlab-stay-be30", r), before, bound)
	}
	want := "google-stay-be0: -usage " + files + ": found no files of google: the public files are " + usage.Sources
	if err := run("^google-stay-be0$"); err == nil || err.Error() != want {
		t.Errorf("without files: %v, want %s", err, want)
	}
}
