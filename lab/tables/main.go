// Command tables generates the tables of lab/results from the results of lab/experiment: tables.md, runs.csv and the marked
// parts of README.md.
//
//	tables RESULTS FOLDER
//
// RESULTS is the folder that lab/experiment wrote, FOLDER the folder of the tables. Results of the tuning half are ignored,
// except the results of variants of the profiles in RESULTS/variants and RESULTS/ablations.
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
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: tables RESULTS FOLDER")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
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

// The folders with the results of variants and ablations, in RESULTS.
const (
	variantsFolder  = "variants"
	ablationsFolder = "ablations"
)

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// generate reads the results and writes all files.
func generate(from, folder string) error {
	e, err := readExperiment(from, scenarios.Published)
	if err != nil {
		return err
	}
	for folder, part := range map[string]**experiment{variantsFolder: &e.variants, ablationsFolder: &e.ablations} {
		if folder := filepath.Join(from, folder); isFolder(folder) {
			if *part, err = readExperiment(folder, scenarios.Tuning); err != nil {
				return err
			}
		}
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
	page := filepath.Join(folder, "README.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	updated, err := e.fill(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(updated), 0o644)
}
