// Command experiment makes what docs/results.md shows of the results of plimsoll
// compare: pictures, tables and all runs. docs/results/run.sh says which
// results these are.
//
//	experiment FOLDER NAME=RESULT.json...
package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/report/whatif"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// tabled are the figures of which there are tables, drawn those of which there are
// pictures, too.
var (
	tabled = []string{
		"overloadMinutes", "cpuOverloadMinutes", "memoryOverruns", "throttledCoreSeconds", "unschedulable", "nodesUsed",
		"cpuLimitRatioP50", "cpuLimitRatioP95", "cpuLimitRatioMax", "memoryLimitRatioP95", "memoryLimitRatioMax",
	}
	drawn = []string{"overloadMinutes", "memoryOverruns", "unschedulable", "cpuLimitRatioMax"}
)

// experiment is one result and its name.
type experiment struct {
	name string
	result.Result
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: experiment FOLDER NAME=RESULT.json...")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write reads the results, and writes everything into the folder.
func write(folder string, arguments []string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var all []*experiment
	for _, argument := range arguments {
		e, err := read(argument)
		if err != nil {
			return err
		}
		all = append(all, e)
		for _, figure := range drawn {
			picture, err := whatif.Dots(&e.Result, figure)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, e.name+"-"+figure+".svg"), []byte(picture), 0o644); err != nil {
				return err
			}
		}
	}
	var page bytes.Buffer
	if err := tables(&page, all); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "tables.md"), page.Bytes(), 0o644); err != nil {
		return err
	}
	var runs bytes.Buffer
	if err := listRuns(&runs, all); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "runs.csv"), runs.Bytes(), 0o644)
}

// read reads NAME=FILE.
func read(argument string) (*experiment, error) {
	name, file, ok := strings.Cut(argument, "=")
	if !ok || name == "" || name != filepath.Base(name) {
		return nil, fmt.Errorf("found %q, want NAME=RESULT.json", argument)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	e := &experiment{name: name}
	if err := json.Unmarshal(content, &e.Result); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if e.APIVersion != result.APIVersion || len(e.Scenarios) == 0 || e.Interrupted {
		return nil, fmt.Errorf("%s: want a whole result of plimsoll compare -o json", file)
	}
	return e, nil
}

// tables writes the page of tables.
func tables(w *bytes.Buffer, all []*experiment) error {
	w.WriteString("# Tables of the experiment\n\nMade by `docs/results/run.sh`. Means over seeds; **bold** is clearly better than the first profile (its 95 %\ninterval of the paired differences does not hold 0), _italic_ clearly worse, \\* clearly different where\nneither less nor more is better. [results.md](../results.md) says what was run and what it means.\n")
	for _, e := range all {
		fmt.Fprintf(w, "\n## %s\n\n%d nodes, %d pods, %s.\n", e.name, e.Source.Nodes, e.Source.Pods, count(len(e.Seeds), "seed"))
		tally(w, e)
		for _, figure := range tabled {
			w.WriteByte('\n')
			if err := whatif.WriteSweep(w, &e.Result, figure); err != nil {
				return err
			}
		}
	}
	return nil
}

// tally writes how often each profile is better, no different and worse.
func tally(w *bytes.Buffer, e *experiment) {
	fmt.Fprintf(w, "\n| scenarios better / neither / worse, of %d |", len(e.Scenarios))
	for _, name := range e.Profiles[1:] {
		fmt.Fprintf(w, " %s |", name)
	}
	w.WriteString("\n|---|" + strings.Repeat("---:|", len(e.Profiles)-1) + "\n")
	for _, named := range result.CommonFigures() {
		if !slices.Contains(tabled, named.Name) || named.Direction == result.Neutral {
			continue
		}
		fmt.Fprintf(w, "| %s |", whatif.FigureLabel(named.Name))
		for _, c := range whatif.Tally(&e.Result, named.Name) {
			fmt.Fprintf(w, " %d / %d / %d |", c.Better, c.Neither, c.Worse)
		}
		w.WriteByte('\n')
	}
}

// count says how many of something there are.
func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// listRuns writes every run with every figure.
func listRuns(w *bytes.Buffer, all []*experiment) error {
	out := csv.NewWriter(w)
	head := []string{"experiment", "limits", "usage", "profile", "seed"}
	for _, named := range result.CommonFigures() {
		head = append(head, named.Name)
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for _, e := range all {
		for i := range e.Scenarios {
			s := &e.Scenarios[i]
			for j := range s.Profiles {
				for k := range s.Profiles[j].Runs {
					run := &s.Profiles[j].Runs[k]
					_, usage, _ := strings.Cut(whatif.ScenarioLabel(s), ", ")
					row := []string{e.name, s.Limits, usage, s.Profiles[j].Name, strconv.FormatUint(run.Seed, 10)}
					for _, named := range result.CommonFigures() {
						row = append(row, strconv.FormatFloat(named.Value(run), 'g', 5, 64))
					}
					if err := out.Write(row); err != nil {
						return err
					}
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}
