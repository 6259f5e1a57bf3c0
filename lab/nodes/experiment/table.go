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
	requests, throttled, periods float64
	// late is the number of late requests less the floor: those that were late for reasons outside of the nodes, at least 0.
	late float64
	// saturated is the number of nodes whose mean use or demand was above a fraction of their CPU, overloaded the number of nodes whose
	// demand was above their CPU in a step of the recorded usage.
	saturated, overloaded float64
}

// saturation is the use of a node, as a fraction of its CPU, above which it counts as saturated.
const saturation = 0.95

func (r *Result) figures() (f figures) {
	size := float64(r.Settings.CPU)
	for _, n := range r.Nodes {
		f.requests += float64(n.Requests)
		f.late += float64(n.Late)
		f.throttled += float64(n.ThrottledPeriods)
		f.periods += float64(n.Periods)
		if max(n.Used, n.Demand) > saturation*size {
			f.saturated++
		}
		if n.Peak > size {
			f.overloaded++
		}
	}
	f.late = max(f.late-r.Floor*f.requests, 0)
	return f
}

// row is the comparison of an arm with the default profile.
type row struct {
	history history
	arm     string
	// pairs are the figures of the arm and of the default profile.
	pairs [][2]figures
}

// rows returns the comparisons for which there are runs.
func rows(byRun map[string]*Result) (all []row) {
	for _, h := range []history{warm, cold} {
		for _, arm := range []string{predictedArm, "low-risk", "packed", craneArm} {
			r := row{history: h, arm: arm}
			for seed := 1; seed <= 1000; seed++ {
				a, b := byRun[run{h, seed, arm}.String()], byRun[run{h, seed, defaultArm}.String()]
				if a != nil && b != nil {
					r.pairs = append(r.pairs, [2]figures{a.figures(), b.figures()})
				}
			}
			if len(r.pairs) > 0 {
				all = append(all, r)
			}
		}
	}
	return all
}

// printTable prints the tables of the runs of a folder in Markdown.
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
	all := rows(byRun)
	fmt.Fprintln(w, "| history, profile | pairs | requests later than 50 ms | default in the same pairs | relative [95 % interval] | p |"+
		" pairs better / equal / worse | throttled periods | default |\n"+
		"|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, r := range all {
		r.printLate(w)
	}
	fmt.Fprintln(w, "\nLate requests are less the floor of their run: the share that a program outside of the nodes had late.\n\n"+
		"| history, profile | pairs | saturated nodes | default | relative [95 % interval] |"+
		" overloaded nodes | default | relative [95 % interval] |\n"+
		"|---|---:|---:|---:|---:|---:|---:|---:|")
	for _, r := range all {
		r.printLoad(w)
	}
	fmt.Fprintf(w, "\nNumbers of nodes are means per run. A node is saturated if its pods used, or asked for, more than %.0f %% of its CPU"+
		" in the mean,\nand overloaded if they asked for more than its CPU in a step of the recorded usage.\n\n"+
		"%d of %d runs are void: the machine had more than %.0f %% pressure.\n", 100*saturation, void, len(results), 100*maxPressure)
	printPredictions(w, results)
	return nil
}

// sums returns the sums of a figure over the pairs: of the arm and of the default profile.
func (r *row) sums(figure func(*figures) float64) (a, b float64) {
	for i := range r.pairs {
		a, b = a+figure(&r.pairs[i][0]), b+figure(&r.pairs[i][1])
	}
	return a, b
}

// printLate prints the comparison of the late requests.
func (r *row) printLate(w io.Writer) {
	differences := make([]float64, len(r.pairs))
	better, worse := 0, 0
	for i, pair := range r.pairs {
		differences[i] = pair[0].late/pair[0].requests - pair[1].late/pair[1].requests
		switch {
		case differences[i] < 0:
			better++
		case differences[i] > 0:
			worse++
		}
	}
	lateOf := func(f *figures) float64 { return f.late }
	lateA, lateB := r.sums(lateOf)
	requestsA, requestsB := r.sums(func(f *figures) float64 { return f.requests })
	throttledA, throttledB := r.sums(func(f *figures) float64 { return f.throttled })
	periodsA, periodsB := r.sums(func(f *figures) float64 { return f.periods })
	fmt.Fprintf(w, "| %s, %s | %d | %.2f %% | %.2f %% | %s | %.3f | %d / %d / %d | %.1f %% | %.1f %% |\n",
		r.history, r.arm, len(r.pairs), 100*lateA/requestsA, 100*lateB/requestsB, r.relative(lateOf), randomization(differences),
		better, len(r.pairs)-better-worse, worse, 100*throttledA/periodsA, 100*throttledB/periodsB)
}

// printLoad prints the comparison of the saturated and of the overloaded nodes.
func (r *row) printLoad(w io.Writer) {
	fmt.Fprintf(w, "| %s, %s | %d |", r.history, r.arm, len(r.pairs))
	for _, figure := range []func(*figures) float64{
		func(f *figures) float64 { return f.saturated },
		func(f *figures) float64 { return f.overloaded },
	} {
		a, b := r.sums(figure)
		n := float64(len(r.pairs))
		fmt.Fprintf(w, " %.2f | %.2f | %s |", a/n, b/n, r.relative(figure))
	}
	fmt.Fprintln(w)
}

// relative returns the ratio of the sums of a figure with its 95 % interval, by the jackknife over pairs on its logarithm. There is none of
// fewer than three pairs, or if a sum is 0.
func (r *row) relative(figure func(*figures) float64) string {
	a, b := r.sums(figure)
	n := float64(len(r.pairs))
	switch {
	case b == 0:
		return "-"
	case a == 0 || n < 3:
		return fmt.Sprintf("%.2f", a/b)
	}
	// Half an event is added to both sums, which are 0 without some pairs if events are rare.
	logarithms, mean := make([]float64, len(r.pairs)), 0.0
	for i := range r.pairs {
		logarithms[i] = math.Log((a - figure(&r.pairs[i][0]) + 0.5) / (b - figure(&r.pairs[i][1]) + 0.5))
		mean += logarithms[i] / n
	}
	squares := 0.0
	for _, l := range logarithms {
		squares += (l - mean) * (l - mean)
	}
	// Two-sided quantiles of Student's distribution by degrees of freedom.
	t := 2.1
	for _, q := range [][2]float64{{2, 4.30}, {3, 3.18}, {4, 2.78}, {5, 2.57}, {7, 2.36}, {10, 2.23}, {15, 2.13}} {
		if n-1 <= q[0] {
			t = q[1]
			break
		}
	}
	half := math.Exp(t * math.Sqrt((n-1)/n*squares))
	return fmt.Sprintf("%.2f [%.2f, %.2f]", a/b, a/b/half, a/b*half)
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
	fmt.Fprintf(w, "Predicted peaks of nodes against the peaks that their pods had, %d nodes with a history:"+
		" error %.0f %% in the median, %.0f %% in the 90th percentile.\n", len(errs), 100*errs[len(errs)/2], 100*errs[len(errs)*9/10])
}
