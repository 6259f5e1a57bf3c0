package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// readResults reads the results of a folder, by history, seed and arm.
func readResults(dir string) ([]*Result, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var results []*Result
	for _, file := range files {
		raw, err := os.ReadFile(file)
		r := &Result{}
		if err == nil {
			err = json.Unmarshal(raw, r)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		results = append(results, r)
	}
	if len(results) == 0 {
		return nil, errors.New(dir + ": found no results")
	}
	return results, nil
}

// figures are sums over the nodes of a run.
type figures struct {
	requests, late, throttled, periods, saturated float64
}

// saturation is the use of a node, as a fraction of its CPU, above which it counts as saturated.
const saturation = 0.85

func (r *Result) figures() (f figures) {
	for _, n := range r.Nodes {
		f.requests += float64(n.Requests)
		f.late += float64(n.Late)
		f.throttled += float64(n.ThrottledPeriods)
		f.periods += float64(n.Periods)
		if max(n.Used, n.Demand) > saturation*float64(r.Settings.CPU) {
			f.saturated++
		}
	}
	return f
}

// printTable prints the table of the runs of a folder in Markdown.
func printTable(w io.Writer, dir string) error {
	results, err := readResults(dir)
	if err != nil {
		return err
	}
	void := 0
	byRun := map[string]*Result{}
	for _, r := range results {
		if r.Void {
			void++
			continue
		}
		byRun[r.Run] = r
	}
	fmt.Fprintln(w, "| history, profile | pairs | requests later than 50 ms | default in the same pairs | relative [95 % interval] | p |"+
		" pairs better / equal / worse |"+
		" throttled periods | default | saturated nodes | default |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, h := range []history{warm, cold} {
		for _, arm := range []string{predictedArm, "low-risk", "packed", craneArm} {
			var pairs [][2]figures
			for seed := 1; seed <= 1000; seed++ {
				a, b := byRun[run{h, seed, arm}.String()], byRun[run{h, seed, defaultArm}.String()]
				if a != nil && b != nil {
					pairs = append(pairs, [2]figures{a.figures(), b.figures()})
				}
			}
			if len(pairs) > 0 {
				printRow(w, h, arm, pairs)
			}
		}
	}
	fmt.Fprintf(w, "\n%d of %d runs are void: the machine had more than %.0f %% pressure.\n", void, len(results), 100*maxPressure)
	printPredictions(w, results)
	return nil
}

// printRow prints the comparison of an arm with the default profile.
func printRow(w io.Writer, h history, arm string, pairs [][2]figures) {
	var a, b figures
	differences := make([]float64, len(pairs))
	better, worse := 0, 0
	for i, pair := range pairs {
		for j, sum := range []*figures{&a, &b} {
			sum.requests += pair[j].requests
			sum.late += pair[j].late
			sum.throttled += pair[j].throttled
			sum.periods += pair[j].periods
			sum.saturated += pair[j].saturated
		}
		differences[i] = pair[0].late/pair[0].requests - pair[1].late/pair[1].requests
		switch {
		case differences[i] < 0:
			better++
		case differences[i] > 0:
			worse++
		}
	}
	low, high := ratioInterval(pairs)
	nodes := float64(len(pairs))
	fmt.Fprintf(
		w,
		"| %s, %s | %d | %.2f %% | %.2f %% | %.2f [%.2f, %.2f] | %.3f | %d / %d / %d | %.1f %% | %.1f %% | %.1f | %.1f |\n",
		h,
		arm,
		len(pairs),
		100*a.late/a.requests,
		100*b.late/b.requests,
		a.late/math.Max(b.late, 1),
		low,
		high,
		randomization(differences),
		better,
		len(pairs)-better-worse,
		worse,
		100*a.throttled/a.periods,
		100*b.throttled/b.periods,
		a.saturated/nodes,
		b.saturated/nodes,
	)
}

// ratioInterval returns the 95 % interval of the ratio of the sums of late requests, by the jackknife over pairs on its logarithm.
func ratioInterval(pairs [][2]figures) (low, high float64) {
	logarithm := func(without int) float64 {
		a, b := 0.5, 0.5
		for i, pair := range pairs {
			if i != without {
				a, b = a+pair[0].late, b+pair[1].late
			}
		}
		return math.Log(a / b)
	}
	n := float64(len(pairs))
	if n < 3 {
		return 0, math.Inf(1)
	}
	mean, squares := 0.0, 0.0
	for i := range pairs {
		mean += logarithm(i) / n
	}
	for i := range pairs {
		d := logarithm(i) - mean
		squares += d * d
	}
	// Two-sided quantiles of Student's distribution by degrees of freedom.
	t := 2.1
	for _, q := range [][2]float64{{2, 4.30}, {3, 3.18}, {4, 2.78}, {5, 2.57}, {7, 2.36}, {10, 2.23}, {15, 2.13}} {
		if n-1 <= q[0] {
			t = q[1]
			break
		}
	}
	half := t * math.Sqrt((n-1)/n*squares)
	return math.Exp(logarithm(-1) - half), math.Exp(logarithm(-1) + half)
}

// randomization returns the two-sided p value of the exact randomization test of paired differences: the share of changes of signs whose
// sum is at least as far from 0.
func randomization(differences []float64) float64 {
	n := min(len(differences), 22)
	sum := 0.0
	for _, d := range differences[:n] {
		sum += d
	}
	extreme := 0
	for signs := range 1 << n {
		s := 0.0
		for i, d := range differences[:n] {
			if signs&(1<<i) != 0 {
				d = -d
			}
			s += d
		}
		if math.Abs(s) >= math.Abs(sum)-1e-12 {
			extreme++
		}
	}
	return float64(extreme) / float64(int(1)<<n)
}

// printPredictions prints the errors of the predicted peaks of nodes, in runs with a history.
func printPredictions(w io.Writer, results []*Result) {
	var errs []float64
	for _, r := range results {
		if r.History != warm {
			continue
		}
		for _, n := range r.Nodes {
			if n.Predicted > 0 && n.Peak > 0 {
				errs = append(errs, math.Abs(n.Predicted-n.Peak)/n.Peak)
			}
		}
	}
	if len(errs) == 0 {
		return
	}
	slices.Sort(errs)
	fmt.Fprintf(
		w,
		"Predicted peaks of nodes against the peaks that their pods had, %d nodes with a history: error %.0f %% in the median, %.0f %% in the 90th percentile.\n",
		len(errs),
		100*errs[len(errs)/2],
		100*errs[len(errs)*9/10],
	)
}
