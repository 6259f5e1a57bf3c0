package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// comparison is a row of the table: its text, and the names of the cases on both sides.
type comparison struct{ text, theirs, ours string }

// cases are the rows. Plugins without a counterpart of the same name are compared with
// LowRiskOverCommitment, which reads the same load.
var cases = []comparison{
	{"Score, LowRiskOverCommitment, 10 pods", "score/LowRiskOverCommitment/10", "score/LowRiskOverCommitment/10"},
	{"Score, LowRiskOverCommitment, 110 pods", "score/LowRiskOverCommitment/110", "score/LowRiskOverCommitment/110"},
	{"Score, LowRiskOverCommitment, 250 pods", "score/LowRiskOverCommitment/250", "score/LowRiskOverCommitment/250"},
	{
		"Score, LoadVariationRiskBalancing against LowRiskOverCommitment, 110 pods",
		"score/LoadVariationRiskBalancing/110", "score/LowRiskOverCommitment/110",
	},
	{
		"Score, TargetLoadPacking against LowRiskOverCommitment, 110 pods",
		"score/TargetLoadPacking/110", "score/LowRiskOverCommitment/110",
	},
	{"Score, NodeResourcesAllocatable, 10 pods", "score/NodeResourcesAllocatable/10", "score/NodeResourcesAllocatable/10"},
	{"Score, NodeResourcesAllocatable, 110 pods", "score/NodeResourcesAllocatable/110", "score/NodeResourcesAllocatable/110"},
	{"Score, NodeResourcesAllocatable, 250 pods", "score/NodeResourcesAllocatable/250", "score/NodeResourcesAllocatable/250"},
	{"placement, four prioritizers, the algorithm", "place/plain", "place/plain"},
	{"placement, four prioritizers, the whole decision", "place/plain", "decide/plain"},
	{"placement with a label predicate, the algorithm", "place/label", "place/label"},
	{"placement with a label predicate, the whole decision", "place/label", "decide/label"},
	{"placement with a new CEL expression", "place/cel", "new/cel"},
	{"placement with a CEL expression that has been evaluated", "place/cel", "decide/cel"},
}

// The markers of the table in a page.
const (
	beginning = "<!-- peers -->\n"
	end       = "<!-- end of peers -->\n"
)

// tableOf returns the table of results, with the machine and the versions.
func tableOf(ctx context.Context, results []measured) (string, error) {
	versions, err := versionsOf(ctx)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d cores of %s, %s; %s. CPU time, medians of %d alternating rounds.\n\n",
		runtime.NumCPU(), processor(), runtime.Version(), versions, len(results[0].ours))
	out.WriteString("| measured | released | Plimsoll | ratio |\n|---|---:|---:|---:|\n")
	for i, c := range cases {
		theirs, ours := median(results[i].theirs), median(results[i].ours)
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", c.text, duration(theirs), duration(ours), significant(theirs/ours))
	}
	return out.String(), nil
}

// versionsOf returns the versions of the released code.
func versionsOf(ctx context.Context) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Version}}",
		"sigs.k8s.io/scheduler-plugins", "open-cluster-management.io/ocm")
	list.Dir = released
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("versions of %s: %w", released, err)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", ", "), nil
}

// processor returns the name of the processor, the architecture if it is unknown.
func processor() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(raw)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// duration returns a time in nanoseconds with a unit.
func duration(ns float64) string {
	switch {
	case ns >= 1e6:
		return significant(ns/1e6) + " ms"
	case ns >= 1e3:
		return significant(ns/1e3) + " us"
	}
	return significant(ns) + " ns"
}

// significant returns a number with two digits, three from 100 on.
func significant(x float64) string {
	switch {
	case x >= 10:
		return fmt.Sprintf("%.0f", x)
	case x >= 1:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// replaceTable replaces the text between the markers of a page.
func replaceTable(page, table string) error {
	raw, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(raw, []byte(beginning))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return fmt.Errorf("%s: found no lines %q and %q", page, strings.TrimSpace(beginning), strings.TrimSpace(end))
	}
	text := string(before) + beginning + table + end + string(after)
	return os.WriteFile(page, []byte(text), 0o644) //nolint:gosec // as git writes it
}
