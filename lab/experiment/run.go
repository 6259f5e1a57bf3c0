package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/scenarios"
)

// own are the profiles of this project that are compared. The first is the baseline.
var own = []string{"default", "limits", "low-risk", "predicted"}

//go:embed profiles
var labProfiles embed.FS

// tailSeconds is how long a run continues after the last arrival.
const tailSeconds = 600

// readProfiles reads the named profiles, or all.
func readProfiles(names string) ([]engine.NamedConfig, error) {
	list := strings.Split(names, ",")
	if names == "" {
		list = slices.Concat(own, scenarios.Baselines, []string{scenarios.Oracle})
	}
	read := make([]engine.NamedConfig, len(list))
	for i, name := range list {
		text, err := labProfiles.ReadFile("profiles/" + name + ".yaml")
		if err == nil {
			read[i] = engine.NamedConfig{Name: name, Text: text}
			continue
		}
		read[i], err = engine.ReadConfig(name)
		read[i].Name = strings.TrimSuffix(filepath.Base(name), ".yaml")
		if err != nil {
			return nil, fmt.Errorf("-profiles: %w", err)
		}
	}
	return read, nil
}

// run runs the scenarios that have no result yet, and prints the outcome.
func run(ctx context.Context, o options, chosen []scenarios.Scenario, compared []engine.NamedConfig) error {
	if err := os.MkdirAll(o.folder, 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "experiment")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	began := time.Now()
	results := map[string]*result.Result{}
	recordings := &series{folder: o.usage}
	for i := range chosen {
		s := &chosen[i]
		file := filepath.Join(o.folder, s.Name+".json")
		r, err := readResult(file)
		if errors.Is(err, fs.ErrNotExist) {
			if r, err = runScenario(ctx, o, s, compared, recordings, temporary); err == nil {
				err = writeResult(file, r)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		results[s.Name] = r
		fmt.Printf("%s after %v\n", line(s.Name, r), time.Since(began).Round(time.Second))
	}
	printSums(chosen, results)
	fmt.Printf("used CPU time %.0f minutes in %v\n", childSeconds()/60, time.Since(began).Round(time.Second))
	return nil
}

// runScenario runs a scenario with all profiles and seeds.
func runScenario(
	ctx context.Context, o options, s *scenarios.Scenario, compared []engine.NamedConfig, recordings *series, temporary string,
) (*result.Result, error) {
	folder, err := os.MkdirTemp(temporary, "scenario")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	seeded, err := seedJobs(o, s, recordings, folder)
	if err != nil {
		return nil, err
	}
	r := &result.Result{APIVersion: result.APIVersion, Kind: result.Kind}
	if err := describe(r, s, &seeded[0]); err != nil {
		return nil, err
	}
	for i := range seeded {
		r.Seeds = append(r.Seeds, seeded[i].Seed)
	}
	var jobs []compare.Job
	for _, profile := range compared {
		r.Profiles = append(r.Profiles, profile.Name)
		for _, j := range seeded {
			j.Profile = profile
			jobs = append(jobs, j)
		}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, program, serveCommand) }
	runs, err := compare.Pool{Command: command, Processes: o.processes}.Run(ctx, jobs)
	if err != nil {
		return nil, err
	}
	scenario := result.Scenario{Limits: "recorded", Usage: "recorded"}
	for i, profile := range compared {
		p := result.Profile{Name: profile.Name}
		for _, run := range runs[i*o.seeds : (i+1)*o.seeds] {
			if run == nil || run.Interrupted {
				return nil, errors.New("interrupted")
			}
			p.Runs = append(p.Runs, *run)
		}
		scenario.Profiles = append(scenario.Profiles, p)
	}
	scenario.Compare()
	r.Scenario = scenario
	return r, nil
}

// seedJobs returns a job for each seed, without a profile. The recordings are in a folder.
func seedJobs(o options, s *scenarios.Scenario, recordings *series, folder string) ([]compare.Job, error) {
	jobs := make([]compare.Job, o.seeds)
	for i := range jobs {
		jobs[i] = compare.Job{Metrics: replay.DefaultMetrics, Seed: uint64(o.seed + i)}
		var err error
		if jobs[i].Source.Recording, err = recordings.draw(s, jobs[i].Seed, folder); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// describe adds the source and the settings to a result.
func describe(r *result.Result, s *scenarios.Scenario, j *compare.Job) error {
	in, err := j.Source.Input(j.Seed)
	if err != nil {
		return err
	}
	r.Source = result.Source{Name: s.Name, Nodes: len(in.Nodes), Pods: len(in.Pods)}
	r.Assumed = in.Assumptions
	r.Settings = result.Settings{
		StepSeconds: replay.Step, TailSeconds: tailSeconds, Level: result.Level, Metrics: j.Metrics,
	}
	return nil
}

func readResult(file string) (*result.Result, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &result.Result{}
	return r, json.Unmarshal(content, r)
}

func writeResult(file string, r *result.Result) error {
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// childSeconds returns the CPU time of the processes that have ended.
func childSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
