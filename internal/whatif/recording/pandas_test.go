//go:build foreign

package recording

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestPandas runs the two lines of docs/recording.md with pandas, over the recording of the repository: the sum of the usage of all pods, and the
// number of values, are those that Open reads.
func TestPandas(t *testing.T) {
	page, err := os.ReadFile("../../../docs/recording.md")
	must.Succeed(t, err)
	var lines []string
	for line := range strings.Lines(string(page)) {
		if code, ok := strings.CutPrefix(line, "    "); ok && (strings.HasPrefix(code, "lines = ") || strings.HasPrefix(code, "usage = ")) {
			lines = append(lines, strings.TrimSpace(code))
		}
	}
	if len(lines) != 2 {
		t.Fatalf("found the lines %q in docs/recording.md", lines)
	}
	const file = "../../../examples/recording/week.ndjson.gz"
	script := "import pandas\n" + strings.ReplaceAll(strings.Join(lines, "\n"), "week.ndjson.gz", file) +
		"\nvalues = usage.cpuMillicores.dropna()\nprint([float(values.sum()), len(values)])\n"
	python := "python3"
	if exec.CommandContext(t.Context(), python, "-c", "import pandas").Run() != nil {
		python = "/usr/bin/python3" // of Debian's package, if another is first
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got [2]float64
	must.Succeed(t, json.Unmarshal(out[strings.LastIndex(string(out), "["):], &got))
	r, err := Open(file)
	must.Succeed(t, err)
	var want [2]float64
	for i := range r.Pods {
		for step := range r.About.Steps() {
			if cpu, ok := r.Pods[i].CPU.At(step); ok {
				want[0], want[1] = want[0]+cpu, want[1]+1
			}
		}
	}
	if got[1] != want[1] || math.Abs(got[0]/want[0]-1) > 0.001 { // in memory, a value has 16 bits
		t.Errorf("pandas reads a sum and a number of values of %v, want %v", got, want)
	}
}
