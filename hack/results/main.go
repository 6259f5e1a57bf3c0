// Command results generates the charts, the tables and the list of runs of docs/results.md, and the marked parts of that
// page, from the results of hack/experiment.
//
//	results RESULTS DOCS
//
// RESULTS is the folder that hack/experiment wrote, DOCS the folder of the page. Results of the tuning half are ignored, except
// in RESULTS/variants and RESULTS/ablations, which have those of variants of the profiles.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plimsoll-k8s/plimsoll/hack/experiment/scenarios"
	"github.com/plimsoll-k8s/plimsoll/internal/report/whatif"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: results RESULTS DOCS")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// drawnFigures are the figures with charts.
var drawnFigures = figures("overloadMinutes", "memoryOverruns", "unschedulable", "cpuLimitRatioMax", "nodesUsed")

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

// The folders with the results of variants and ablations, in that of the others.
const (
	variantsFolder  = "variants"
	ablationsFolder = "ablations"
)

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// generate reads the results and writes all files.
func generate(from, docs string) error {
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
	folder := filepath.Join(docs, "results")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	charted := e.charted()
	for _, figure := range drawnFigures {
		if err := os.WriteFile(filepath.Join(folder, figure.Name+".svg"), []byte(whatif.Dots(&charted, figure)), 0o644); err != nil {
			return err
		}
	}
	var tables, runs bytes.Buffer
	if err := e.writeTables(&tables); err != nil {
		return err
	}
	if err := e.writeRuns(&runs); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "tables.md"), tables.Bytes(), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "runs.csv"), runs.Bytes(), 0o644); err != nil {
		return err
	}
	page := filepath.Join(docs, "results.md")
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
