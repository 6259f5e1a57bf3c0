package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestPrintTable expects the sums of pairs less the floor of each run, and their intervals.
func TestPrintTable(t *testing.T) {
	dir := t.TempDir()
	write := func(h history, seed int, arm string, floor float64, isVoid bool, nodes ...NodeResult) {
		r := Result{Run: run{h, seed, arm}.String(), History: h, Settings: settings{CPU: 100}, Floor: floor, Void: isVoid, Nodes: nodes}
		raw, err := json.Marshal(r)
		must.Succeed(t, err)
		must.Succeed(t, os.WriteFile(filepath.Join(dir, r.Run+".json"), raw, 0o600))
	}
	node := func(requests, late int, used, demand, peak float64) NodeResult {
		return NodeResult{
			Requests: requests, Late: late, Used: used, Demand: demand, Peak: peak, Predicted: 1.1 * peak,
			Periods: 10, ThrottledPeriods: 1,
		}
	}
	// predicted: 30 - 0.01*1000 = 20, 5 - 0.01*1000 < 0: 0, and 40: 60 of 3000 = 2 %. default: 90 - 0.01*1000 = 80, 40, 120: 240 of 3000 =
	// 8 %, ratio 0.25. Logarithms without a pair: ln(40.5/160.5), ln(60.5/200.5), ln(20.5/120.5) = -1.377, -1.198, -1.771, mean -1.449,
	// squares 0.172: exp(4.30*sqrt(2/3*0.172)) = 4.29, from 0.06 to 1.07. All 3 differences have one sign: p = 2/8.
	for seed, late := range [][2]int{{30, 90}, {5, 40}, {40, 120}} {
		write(warm, seed+1, predictedArm, []float64{0.01, 0.01, 0}[seed], false, node(500, late[0], 95, 95, 100), node(500, 0, 50, 50, 50))
		write(warm, seed+1, defaultArm, []float64{0.01, 0, 0}[seed], false, node(500, late[1], 96, 80, 101), node(500, 0, 50, 96, 90))
	}
	write(warm, 4, predictedArm, 0, true, node(1, 1, 0, 0, 0))
	write(warm, 4, defaultArm, 0, false, node(1, 0, 0, 0, 0))
	// Saturated are 1, 2 and 1 nodes against 2 each, 4/6 = 0.67. Logarithms without a pair: ln(3.5/4.5), ln(2.5/4.5), ln(3.5/4.5) =
	// -0.251, -0.588, -0.251, mean -0.363, squares 0.0755: exp(4.30*sqrt(2/3*0.0755)) = 2.62, from 0.25 to 1.75.
	// Overloaded are 0 against 2.
	for seed, used := range []float64{95, 96, 95} {
		write(cold, seed+1, predictedArm, 0, false, node(100, 1, 96, 0, 0), node(100, 0, used, 0, 100))
		write(cold, seed+1, defaultArm, 0, false, node(100, 1, 96, 0, 0), node(100, 0, 0, 96, []float64{101, 100, 101}[seed]))
	}
	write(cold, 4, craneArm, 0, false, node(100, 0, 0, 0, 0))
	write(cold, 4, defaultArm, 0, false, node(100, 0, 0, 0, 0))

	var out strings.Builder
	must.Succeed(t, printTable(&out, dir))
	for _, want := range []string{
		"\n| warm, predicted | 3 | 2.00 % | 8.00 % | 0.25 [0.06, 1.07] | 0.250 | 3 / 0 / 0 | 10.0 % | 10.0 % |\n",
		"\n| cold, predicted | 3 | 0.50 % | 0.50 % | 1.00 [1.00, 1.00] | 1.000 | 0 / 3 / 0 | 10.0 % | 10.0 % |\n",
		"\n| cold, crane | 1 | 0.00 % | 0.00 % | - | 1.000 | 0 / 1 / 0 | 10.0 % | 10.0 % |\n",
		"\n| warm, predicted | 3 | 0.00 | 2.00 | 0.00 | 0.00 | 1.00 | 0.00 |\n",
		"\n| cold, predicted | 3 | 1.33 | 2.00 | 0.67 [0.25, 1.75] | 0.00 | 0.67 | 0.00 |\n",
		"\n| cold, crane | 1 | 0.00 | 0.00 | - | 0.00 | 0.00 | - |\n",
		"\nLate requests are less the floor of their run: ",
		"\n1 of 16 runs are void: ",
		"12 nodes with a history: error 10 % in the median, 10 % in the 90th percentile.\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, &out)
		}
	}
}
