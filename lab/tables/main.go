// Command tables generates the tables of lab/results from the results of lab/experiment: tables.md, runs.csv, and the marked parts of
// README.md and of further pages.
//
//	tables RESULTS FOLDER [PAGE...]
//
// RESULTS is the folder that lab/experiment wrote, with the results of the parts of the model, in the tuning half, in RESULTS/ablations,
// and of each level of use in a folder below RESULTS/levels, such as RESULTS/levels/0.45; without these, their tables remain as they are.
// FOLDER is the folder of the tables.
package main

import (
	"bytes"
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

// readResults reads the results.
func readResults(from string) (*experiment, error) {
	e, err := read(from, scenarios.Published)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(from, "ablations")
	if _, err := os.Stat(folder); err == nil {
		if e.ablations, err = read(folder, scenarios.Tuning); err != nil {
			return nil, err
		}
	}
	e.levels, err = readLevels(filepath.Join(from, "levels"))
	return e, err
}

// generate reads the results and writes all files.
func generate(from, folder string, pages ...string) error {
	e, err := readResults(from)
	if err != nil {
		return err
	}
	var tables, runs bytes.Buffer
	e.writeTables(&tables)
	if err := e.writeRuns(&runs); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "tables.md"), tables.Bytes(), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "runs.csv"), runs.Bytes(), 0o644); err != nil {
		return err
	}
	readme := filepath.Join(folder, "README.md")
	for _, page := range append([]string{readme}, pages...) {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		updated, err := e.fill(string(text), page == readme)
		if err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		if err := os.WriteFile(page, []byte(updated), 0o644); err != nil {
			return err
		}
	}
	return nil
}
