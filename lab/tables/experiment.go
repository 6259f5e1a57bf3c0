package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/scenarios"
)

// scenario is a published scenario with its result.
type scenario struct {
	scenarios.Scenario
	result result.Result
}

// profile returns the results of a profile.
func (s *scenario) profile(name string) *result.Profile {
	profiles := s.result.Scenario.Profiles
	return &profiles[slices.IndexFunc(profiles, func(p result.Profile) bool { return p.Name == name })]
}

// mean returns the mean of a figure of a profile over the seeds.
func (s *scenario) mean(profile string, figure result.Definition) float64 {
	return s.profile(profile).Figures[figure.Name].Mean
}

// experiment has the results of all published scenarios, which have the same profiles and seeds.
type experiment struct {
	scenarios []scenario
	profiles  []string
	seeds     []uint64
	// missing are the names of published scenarios without a result.
	missing []string
	// ablations has the results of the profile predicted with parts of its model left out, in the tuning half; nil if they were not run.
	ablations *experiment
	// levels have the results at other levels of use, the lowest first; empty if they were not run.
	levels []levelOfUse
}

// read reads the results of the scenarios of a part in a folder.
func read(folder string, part scenarios.Part) (*experiment, error) {
	e := &experiment{}
	for _, s := range scenarios.All() {
		if s.Part != part {
			continue
		}
		read := scenario{Scenario: s}
		file := filepath.Join(folder, s.Name+".json")
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			e.missing = append(e.missing, s.Name)
			continue
		}
		if err == nil {
			err = json.Unmarshal(content, &read.result)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if err := e.add(read); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if len(e.scenarios) == 0 {
		return nil, fmt.Errorf("%s: found no results of %s scenarios: must be written by lab/experiment", folder, part)
	}
	return e, nil
}

// add adds a result.
func (e *experiment) add(s scenario) error {
	r := &s.result
	switch {
	case r.APIVersion != result.APIVersion || len(r.Scenario.Profiles) != len(r.Profiles) || r.Interrupted || len(r.Profiles) < 2:
		return errors.New("must be a complete result of lab/experiment with at least two profiles")
	case len(e.scenarios) == 0:
		e.profiles, e.seeds = r.Profiles, r.Seeds
	case !slices.Equal(e.profiles, r.Profiles) || !slices.Equal(e.seeds, r.Seeds):
		return fmt.Errorf(
			"found profiles %v and seeds %v: must be %v and %v as in the other results",
			r.Profiles,
			r.Seeds,
			e.profiles,
			e.seeds,
		)
	}
	e.scenarios = append(e.scenarios, s)
	return nil
}

// baseline returns the name of the first profile.
func (e *experiment) baseline() string { return e.profiles[0] }

// subject returns the profile that the page is about: predicted or, if it was not run, the second profile.
func (e *experiment) subject() string {
	if slices.Contains(e.profiles, "predicted") {
		return "predicted"
	}
	return e.profiles[1]
}

// family returns the scenarios of a family.
func (e *experiment) family(f scenarios.Family) (in []*scenario) {
	for i := range e.scenarios {
		if e.scenarios[i].Is(f) {
			in = append(in, &e.scenarios[i])
		}
	}
	return in
}

// sum returns a figure of a profile summed over scenarios, as mean over the seeds.
func sum(of []*scenario, profile string, figure result.Definition) (total float64) {
	for _, s := range of {
		total += s.mean(profile, figure)
	}
	return total
}

// values returns a figure of a profile for each seed.
func (s *scenario) values(profile string, figure result.Definition) []float64 {
	runs := s.profile(profile).Runs
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = figure.Value(&runs[i])
	}
	return values
}

// differences returns the differences of a figure from the baseline for each seed.
func (e *experiment) differences(s *scenario, profile string, figure result.Definition) []float64 {
	before, after := s.values(e.baseline(), figure), s.values(profile, figure)
	for i := range after {
		after[i] -= before[i]
	}
	return after
}
