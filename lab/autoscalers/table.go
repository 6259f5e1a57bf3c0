package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gonum.org/v1/gonum/stat"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// figures are the figures of a run. Waits are in seconds.
type figures struct {
	NodeMinutes       float64
	Pods, Evicted     int
	WaitMean, WaitP99 float64
	OverloadMinutes   float64
}

// overload returns the percentage of node time with overload.
func (f figures) overload() float64 { return 100 * f.OverloadMinutes / f.NodeMinutes }

var header = []string{
	"autoscaler", "arrivals", "profile", "seed", "node minutes", "pods", "evicted", "mean wait", "p99 of waits", "overload minutes",
}

// runs are the runs of a file.
type runs struct {
	mu   sync.Mutex
	file string
	done map[key]figures
}

// readRuns reads the runs of a file, which need not exist.
func readRuns(file string) (*runs, error) {
	r := &runs{file: file, done: map[key]figures{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, os.WriteFile(file, []byte(strings.Join(header, ",")+"\n"), 0o644)
	} else if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, row := range rows[min(1, len(rows)):] {
		var k key
		var f figures
		k.Autoscaler, k.Arrivals, k.Profile = row[0], row[1], row[2]
		_, err := fmt.Sscan(
			strings.Join(row[3:], " "),
			&k.Seed,
			&f.NodeMinutes,
			&f.Pods,
			&f.Evicted,
			&f.WaitMean,
			&f.WaitP99,
			&f.OverloadMinutes,
		)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", file, i+2, err)
		}
		r.done[k] = f
	}
	return r, nil
}

func (r *runs) has(k key) bool {
	_, found := r.done[k]
	return found
}

// add appends a run to the file.
func (r *runs) add(k key, f figures) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[k] = f
	file, err := os.OpenFile(r.file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }
	w := csv.NewWriter(file)
	err = w.Write([]string{
		k.Autoscaler, k.Arrivals, k.Profile, strconv.FormatUint(k.Seed, 10), number(f.NodeMinutes), strconv.Itoa(f.Pods),
		strconv.Itoa(f.Evicted), number(f.WaitMean), number(f.WaitP99), number(f.OverloadMinutes),
	})
	w.Flush()
	return errors.Join(err, w.Error(), file.Close())
}

// page returns a page with the tables.
func (r *runs) page() string {
	var b strings.Builder
	b.WriteString(
		"# Profiles beside autoscalers\n\nWritten by `go run ./autoscalers results` in `lab`; [the program](../autoscalers/main.go) ",
	)
	b.WriteString("describes the runs, `autoscalers.csv` has them.\n\n## All arrivals\n\n")
	all := make([]string, len(kinds))
	for i, kind := range kinds {
		all[i] = kind.name
	}
	r.table(&b, all)
	for _, name := range all {
		b.WriteString("\n## Arrivals: " + name + "\n\n")
		r.table(&b, []string{name})
	}
	return b.String()
}

// table writes a row for each autoscaler and profile, over the runs of some kinds of arrivals. Differences from the first profile are those
// between runs of the same arrivals and seed.
func (r *runs) table(b *strings.Builder, arrivals []string) {
	b.WriteString("| autoscaler (runs), profile | nodes | relative to default (95 %) | evicted of 100 pods | wait, mean and p99, s | " +
		"overload, % of node time | more than default (95 %) |\n|---|---:|---|---:|---:|---:|---|\n")
	for _, autoscaler := range autoscalers {
		for _, profile := range profiles {
			var nodes, size, baseSize, evicted, waits, p99, overload, baseOverload []float64
			for k, f := range r.done {
				base, found := r.done[key{k.Autoscaler, k.Arrivals, profiles[0], k.Seed}]
				if k.Autoscaler != autoscaler || k.Profile != profile || !slices.Contains(arrivals, k.Arrivals) || !found {
					continue
				}
				nodes = append(nodes, f.NodeMinutes*60/seconds)
				size, baseSize = append(size, math.Log(f.NodeMinutes)), append(baseSize, math.Log(base.NodeMinutes))
				evicted = append(evicted, 100*float64(f.Evicted)/float64(f.Pods))
				waits, p99 = append(waits, f.WaitMean), append(p99, f.WaitP99)
				overload, baseOverload = append(overload, f.overload()), append(baseOverload, base.overload())
			}
			if len(nodes) < 2 {
				continue
			}
			mean := func(list []float64) float64 { return stat.Mean(list, nil) }
			relative, change := "1", "0"
			if profile != profiles[0] {
				d := result.PairedDifference(baseSize, size)
				relative = fmt.Sprintf("%.2f (%.2f to %.2f)", math.Exp(d.Mean), math.Exp(d.Interval.Low), math.Exp(d.Interval.High))
				d = result.PairedDifference(baseOverload, overload)
				change = fmt.Sprintf("%+.1f (%+.1f to %+.1f)", d.Mean, d.Interval.Low, d.Interval.High)
			}
			fmt.Fprintf(b, "| %s (%d), %s | %.1f | %s | %.1f | %.1f, %.0f | %.1f | %s |\n", autoscaler, len(nodes), profile, mean(nodes),
				relative, mean(evicted), mean(waits), mean(p99), mean(overload), change)
		}
	}
}
