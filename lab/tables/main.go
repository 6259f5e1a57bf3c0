// Command tables generates the tables of lab/results from the results of lab/experiment: tables.md and runs.csv, real-tables.md and
// real-runs.csv for the scenarios on real usage, and the marked parts of README.md and of further pages.
//
//	tables RESULTS FOLDER [PAGE...]
//
// RESULTS is the folder that lab/experiment wrote, with the scenarios on real usage in RESULTS/real; one of the two may be missing, and
// its tables then remain as they are. FOLDER is the folder of the tables. Results of the tuning half are ignored, except the results of
// variants of the profiles in RESULTS/variants, RESULTS/ablations and RESULTS/real/ablations.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/scenarios"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: tables RESULTS FOLDER [PAGE...]")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2], os.Args[3:]...); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// figures returns the definitions of figures.
func figures(names ...string) []result.Definition {
	definitions := make([]result.Definition, len(names))
	for i, name := range names {
		var ok bool
		if definitions[i], ok = result.FigureByName(name); !ok {
			panic("unknown figure " + name)
		}
	}
	return definitions
}

// The folders with the results on real usage, of variants and of ablations, in RESULTS.
const (
	realFolder      = "real"
	variantsFolder  = "variants"
	ablationsFolder = "ablations"
)

// results are the experiments on generated and on real usage; nil if they were not run.
type results struct{ generated, real *experiment }

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// readResults reads the results.
func readResults(from string) (r results, err error) {
	real := filepath.Join(from, realFolder)
	if isFolder(real) {
		if r.real, err = readReal(real, scenarios.Published); err != nil {
			return r, err
		}
		if folder := filepath.Join(real, ablationsFolder); isFolder(folder) {
			if r.real.ablations, err = readReal(folder, scenarios.Tuning); err != nil {
				return r, err
			}
		}
	}
	if r.generated, err = readExperiment(from, scenarios.Published); err != nil {
		if errors.Is(err, errNone) && r.real != nil {
			return r, nil
		}
		return r, err
	}
	for folder, part := range map[string]**experiment{variantsFolder: &r.generated.variants, ablationsFolder: &r.generated.ablations} {
		if folder := filepath.Join(from, folder); isFolder(folder) {
			if *part, err = readExperiment(folder, scenarios.Tuning); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// generate reads the results and writes all files.
func generate(from, folder string, pages ...string) error {
	r, err := readResults(from)
	if err != nil {
		return err
	}
	for prefix, e := range map[string]*experiment{"": r.generated, "real-": r.real} {
		if e == nil {
			continue
		}
		var tables, runs bytes.Buffer
		e.writeTables(&tables)
		if err := e.writeRuns(&runs); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, prefix+"tables.md"), tables.Bytes(), 0o644); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, prefix+"runs.csv"), runs.Bytes(), 0o644); err != nil {
			return err
		}
	}
	readme := filepath.Join(folder, "README.md")
	for _, page := range append([]string{readme}, pages...) {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		updated, err := r.fill(string(text), page == readme)
		if err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		if err := os.WriteFile(page, []byte(updated), 0o644); err != nil {
			return err
		}
	}
	return nil
}
