package demo

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/test/support/doccheck"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// runDemo runs the demo with a new temporary directory, and expects that no files remain in it.
func runDemo(t *testing.T, args ...string) (stdout, stderr string, exitCode int) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program.Path(t, "plimsoll-demo"), args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	stdout, stderr, exitCode = program.RunCommand(t, cmd)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v (%v)\n%s", left, err, stderr)
	}
	return stdout, stderr, exitCode
}

// results runs scenarios of the demo and returns their results. All must be as expected.
func results(t *testing.T, args ...string) (results []demo.Result) {
	t.Helper()
	stdout, stderr, exitCode := runDemo(t, append([]string{"--once", "-o", "json", "--scenario"}, args...)...)
	if exitCode != 0 {
		t.Fatalf("exit code %d\n%s", exitCode, stderr)
	}
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&results); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	for _, r := range results {
		if !r.OK {
			t.Errorf("result %+v", r)
		}
	}
	return results
}

// expectSlack expects that the pods of a burst wait for a node without slack, and do not wait with it.
func expectSlack(t *testing.T, results []demo.Result) {
	t.Helper()
	slowest, pods := map[string]float64{}, 0
	var steps []string
	for _, r := range results {
		switch {
		case strings.HasPrefix(r.Got, "target "):
			steps = append(steps, r.Got)
		case r.Scenario == "slack":
			pods++
			slowest[r.Profile] = max(slowest[r.Profile], r.Seconds)
		}
	}
	wantSteps := []string{
		"target 0, available 0, 0 placeholders, 2 nodes", "target 0, available 0, 0 placeholders, 3 nodes",
		"target 4, available 4, 4 placeholders, 3 nodes", "target 4, available 0, 4 placeholders, 3 nodes",
		"target 4, available 4, 4 placeholders, 4 nodes",
	}
	if !slices.Equal(steps, wantSteps) {
		t.Errorf("steps %q, want %q", steps, wantSteps)
	}
	// On a busy machine, pods wait for longer in both cases.
	if pods != 8 || slowest["without slack"] < 2 || slowest["with slack"] > max(1, slowest["without slack"]/2) {
		t.Errorf("%d pods waited up to %v s, want more than 2 without slack, and with it less than 1 or half of that", pods, slowest)
	}
	t.Logf("slowest pods of a burst: %v", slowest)
}

// TestDemoOnce expects the results of a scenario in which load is learned, of one without load, of one whose load source fails, of slack, and of
// placements: a workload goes where it fits, and another one does not get the same CPUs.
func TestDemoOnce(t *testing.T) {
	all := results(t, "predicted,limits,risk-load,slack,fleet")
	expectSlack(t, all)
	var selected, fits []string
	for _, r := range all {
		switch {
		case r.Profile == "7-fit":
			placement, _, _ := strings.Cut(r.Object, " (")
			fits = append(fits, placement+" -> "+r.Got)
		case r.Scenario == "fleet", r.Scenario == "slack":
		case r.Want == demo.Any:
			selected = append(selected, r.Scenario+": "+r.Profile+", "+r.Object)
		default:
			selected = append(selected, r.Scenario+": "+r.Summary())
		}
	}
	wantSelected := []string{
		"predicted: default-scheduler, before -> busy", "predicted: default-scheduler, after -> busy",
		"predicted: plimsoll-scheduler, before -> busy", "predicted: plimsoll-scheduler, after -> idle",
		"limits: default-scheduler, pod5 -> node1", "limits: plimsoll-limits, pod5 -> node2",
		"risk-load: default-scheduler, pod3", "risk-load: default-scheduler, pod4",
		"risk-load: plimsoll-low-risk, pod3 -> calm", "risk-load: plimsoll-low-risk, pod4 -> hectic",
	}
	if !slices.Equal(selected, wantSelected) {
		t.Errorf("results %q, want %q", selected, wantSelected)
	}
	const reason = "cluster3: 0 replicas fit of 1: limited by CPU; pods of other placements are not in the summary yet"
	i := slices.IndexFunc(fits, func(fit string) bool { return strings.Contains(fit, reason) })
	wantFits := []string{"solver -> cluster3", "solver -> cluster3", "", "solver -> cluster3", "second-solver -> cluster2"}
	if i < 0 || !slices.Equal(slices.Replace(fits, i, i+1, ""), wantFits) {
		t.Errorf("placements with workloads %q, want %q, and the third with the reason %q", fits, wantFits, reason)
	}
}

func TestDemoBadInput(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer taken.Close()
	port := fmt.Sprint(taken.Addr().(*net.TCPAddr).Port)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--scenario", "none"}, `--scenario: invalid value "none": must be one of predicted, limits, `},
		{[]string{"--port", port}, "--port: listen tcp 127.0.0.1:" + port + ": bind: address already in use"},
		{[]string{"--autoscaler", "karpenter"}, "unknown flag: --autoscaler"},
	} {
		_, stderr, exitCode := runDemo(t, tc.args...)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		if last := lines[len(lines)-1]; exitCode != 2 || !strings.HasPrefix(last, "plimsoll-demo: "+tc.want) {
			t.Errorf("%v: exit code %d, last line %q, want %q", tc.args, exitCode, last, tc.want)
		}
	}
}

// compareAsInTutorial runs the comparison of the tutorial over the cluster of the demo, and expects that nodes are overloaded
// for clearly less time than with the default profile, and that the snapshot gives a first recommendation.
func compareAsInTutorial(t *testing.T, kubeconfig string) {
	t.Helper()
	commands, err := doccheck.CommandsOf("../../..", "plimsoll")
	must.Succeed(t, err)
	i := slices.IndexFunc(commands, func(c doccheck.Command) bool {
		return strings.HasSuffix(c.Page, "tutorial.md") && slices.Contains(c.Words, "--recording")
	})
	if i < 0 {
		t.Fatal("the tutorial compares no profiles over a snapshot")
	}
	file, args := filepath.Join(t.TempDir(), "s.ndjson.gz"), append(commands[i].Arguments(), "-o", "json")
	args[slices.Index(args, "--recording")+1] = file
	if out, warnings := testcluster.MustPlimsoll(t, "snapshot", "-o", file, "--kubeconfig", kubeconfig); warnings != "" ||
		!strings.Contains(out, ", usage of ") {
		t.Errorf("snapshot: %s%s", out, warnings)
	}
	if out, _ := testcluster.MustPlimsoll(t, "recommend", "--recording", file); !strings.HasPrefix(out, "A first look: ") {
		t.Errorf("recommend over the snapshot: %s", out)
	}
	stdout, _ := testcluster.MustPlimsoll(t, args...)
	type figure struct {
		Mean       float64
		Difference struct {
			Mean     float64
			Interval struct{ Clear bool }
		}
	}
	var result struct {
		Scenario struct {
			Profiles []struct{ Figures map[string]figure }
		}
	}
	must.Succeed(t, json.Unmarshal([]byte(stdout), &result))
	for _, profile := range result.Scenario.Profiles[1:] {
		overload, unschedulable := profile.Figures["overloadMinutes"], profile.Figures["unschedulable"]
		if !overload.Difference.Interval.Clear || overload.Difference.Mean >= -overload.Mean || unschedulable.Mean != 0 {
			t.Errorf("%v: overload %+v, want less than half of the default's; unschedulable %+v", commands[i], overload, unschedulable)
		}
	}
}
