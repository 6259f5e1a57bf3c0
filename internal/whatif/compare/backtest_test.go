package compare

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// pool runs jobs in processes of this program.
var pool = Pool{Processes: 2, Command: func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, os.Args[0], "serve") }}

// ignore ignores warnings.
func ignore(string) {}

// jobOver returns a job over a recording.
func jobOver(t testing.TB, file, profile string) Job {
	t.Helper()
	read, err := engine.ReadConfig(profile)
	must.Succeed(t, err)
	return Job{
		Source: generate.Source{Source: recording.Source{Recording: file}, Usage: "bursts:mean=0.7"}, Profile: read, Seed: 1,
		Metrics: result.Metrics{IntervalSeconds: 60, DelaySeconds: 60, WindowSeconds: 900},
	}
}

// simulated is a recording of a simulated run of two days with the default profile, in which pods wait.
const simulated = "../../../examples/recording/week.ndjson.gz"

// figure returns a figure of a backtest.
func figure(t *testing.T, b *result.Backtest, name string) result.BacktestFigure {
	t.Helper()
	for _, f := range b.Figures {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no figure %s", name)
	return result.BacktestFigure{}
}

// TestSimulatedRecording verifies that a recording of a simulated run, in which pods wait, reproduces the run: each pod
// is placed on the same node after the same time, and the overload is the same.
func TestSimulatedRecording(t *testing.T) {
	got, err := Backtest(t.Context(), jobOver(t, simulated, "default"), ignore, pool.Run)
	must.Succeed(t, err)
	measured, simulated := got.Scenario.Measured.Runs[0], got.Scenario.Profiles[0].Runs[0]
	if measured.OverloadMinutes == 0 || measured.PendingSeconds.Max == 0 {
		t.Fatalf("no overload or no pending pods: %+v", measured.Outcome)
	}
	if want := (result.Placements{Same: 400}); got.Backtest.Placements != want {
		t.Errorf("placements %+v, want %+v", got.Backtest.Placements, want)
	}
	if diff := cmp.Diff(measured.Outcome, simulated.Outcome); diff != "" {
		t.Errorf("outcome: %s", diff)
	}
	if measured.Seconds != simulated.Seconds {
		t.Errorf("%d s, want %d", simulated.Seconds, measured.Seconds)
	}
	for _, f := range got.Backtest.Figures {
		if f.Error == nil || *f.Error != 0 {
			t.Errorf("error of %+v", f)
		}
	}
}

// TestOtherProfile verifies that the backtest of a profile that was not in force has an error.
func TestOtherProfile(t *testing.T) {
	got, err := Backtest(t.Context(), jobOver(t, simulated, "most-allocated"), ignore, pool.Run)
	must.Succeed(t, err)
	if got.Backtest.Placements.Other == 0 || *figure(t, got.Backtest, "nodesUsed").Error >= 0 {
		t.Errorf("%+v, want pods on other nodes, and fewer nodes", got.Backtest)
	}
	const summary = "Error of the model, if most-allocated was the profile in force: overload, node minutes "
	if s := got.Backtest.Summary(); !strings.HasPrefix(s, summary) {
		t.Errorf("summary %q", s)
	}
}

func TestErrors(t *testing.T) {
	if _, err := Backtest(t.Context(), jobOver(t, "missing.ndjson.gz", "default"), ignore, pool.Run); err == nil ||
		!strings.Contains(err.Error(), "--recording: open missing.ndjson.gz") {
		t.Errorf("%v", err)
	}
	for options, want := range map[string]string{
		",from=1m,to=1m": "to: invalid value 1m0s: must be more than from",
		",from=soon":     `from: time: invalid duration "soon"`,
		",to=200h":       "must be at most 48h59m0s, the length of the recording",
		",from=2939m":    "found 0 s from second 176340 to 176340: must be at least 60 s",
		",step=60":       "step",
	} {
		if _, err := Backtest(t.Context(), jobOver(t, simulated+options, "default"), ignore, pool.Run); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
}

// BenchmarkDay replays a day of 200 nodes and 6,000 pods. The budget is 60 s.
func BenchmarkDay(b *testing.B) {
	file := filepath.Join(b.TempDir(), "day.ndjson.gz")
	source := generate.Source{Generate: "nodes=200,pods=6000,fill=0.8,over=86400,life=43200", Usage: "constant:mean=1,max=1"}
	must.Succeed(b, generate.Record(file, source, 1))
	job := jobOver(b, file, "default")
	for b.Loop() {
		if _, err := job.Run(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
