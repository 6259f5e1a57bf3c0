package compare

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// pool runs jobs in processes of this program.
var pool = Pool{Processes: 2, Command: func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, os.Args[0], "serve") }}

// backtestOptions returns options with a profile.
func backtestOptions(t testing.TB, file, profile string) BacktestOptions {
	t.Helper()
	read, err := engine.ReadConfig(profile)
	if err != nil {
		t.Fatal(err)
	}
	use, err := recording.ParseUsage("bursts:mean=0.7")
	if err != nil {
		t.Fatal(err)
	}
	return BacktestOptions{
		Recording: file, Profile: read, Usage: use, Seed: 1, Metrics: replay.Metrics{Interval: 60, Delay: 60, Window: 900},
	}
}

// export simulates a generated cluster, and returns the run and a recording of it.
func export(t testing.TB, generate, profile string) (result.Run, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.plrec")
	o := backtestOptions(t, "", profile)
	run, err := Job{
		Source:  recording.Source{Generate: generate},
		Profile: o.Profile,
		Limits:  recording.Limits{CPU: 2, Memory: 2},
		Usage:   o.Usage,
		Metrics: o.Metrics,
		Tail:    600,
		Seed:    1,
		Export:  file,
	}.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return run, file
}

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
	const generate = "nodes=12,pods=200,fill=1.05,churn=7200,life=3600,best-effort=0.1,batch=0.3"
	for _, profile := range []string{"default", "low-risk", "predicted"} {
		t.Run(profile, func(t *testing.T) {
			run, file := export(t, generate, profile)
			got, err := Backtest(t.Context(), backtestOptions(t, file, profile), pool)
			if err != nil {
				t.Fatal(err)
			}
			if run.OverloadMinutes == 0 || run.PendingSeconds.Max == 0 {
				t.Fatalf("no overload or no pending pods: %+v", run.Outcome)
			}
			if p := got.Placements; p.Other != 0 || p.NeverScheduled != 0 || p.Same != run.Scheduled {
				t.Errorf("placements %+v, want %d on the same node", p, run.Scheduled)
			}
			for _, compared := range []result.Run{got.Measured, got.Simulated} {
				if compared.OverloadMinutes != run.OverloadMinutes {
					t.Errorf("overload %v, want %v", compared.OverloadMinutes, run.OverloadMinutes)
				}
				if diff := cmp.Diff(run.PendingSeconds, compared.PendingSeconds); diff != "" {
					t.Errorf("pending: %s", diff)
				}
				if compared.NodesUsed != run.NodesUsed || compared.Seconds != run.Seconds || compared.Unschedulable != run.Unschedulable {
					t.Errorf("nodes used %v, %d s, %d unschedulable; want %v, %d, %d", compared.NodesUsed, compared.Seconds,
						compared.Unschedulable, run.NodesUsed, run.Seconds, run.Unschedulable)
				}
			}
			for _, f := range got.Figures {
				if f.Error == nil || *f.Error != 0 {
					t.Errorf("error of %+v", f)
				}
			}
		})
	}
}

// TestOtherProfile verifies that the backtest of a profile that was not in force has an error.
func TestOtherProfile(t *testing.T) {
	_, file := export(t, "nodes=12,pods=200,fill=0.9,best-effort=0.2", "most-allocated")
	got, err := Backtest(t.Context(), backtestOptions(t, file, "default"), pool)
	if err != nil {
		t.Fatal(err)
	}
	if got.Placements.Other == 0 || *figure(t, got.Backtest, "cpuLoadP95").Error >= 0 {
		t.Errorf("%+v, want pods on other nodes, and a lower peak", got.Backtest)
	}
	if s := got.Summary(); !strings.HasPrefix(s, "Error of the model, if default was the profile in force: overload, node minutes ") {
		t.Errorf("summary %q", s)
	}
}

// TestSameBytes verifies that two backtests and two exports of the same run are equal byte for byte.
func TestSameBytes(t *testing.T) {
	var documents, files []string
	for range 2 {
		_, file := export(t, "nodes=5,pods=60,fill=0.9,over=600,life=600", "low-risk")
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, string(raw))
		got, err := Backtest(t.Context(), backtestOptions(t, file, "low-risk"), pool)
		if err != nil {
			t.Fatal(err)
		}
		got.Source.Name = ""
		document, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(document))
	}
	if files[0] != files[1] {
		t.Error("recordings differ")
	}
	if diff := cmp.Diff(documents[0], documents[1]); diff != "" {
		t.Error(diff)
	}
}

func TestErrors(t *testing.T) {
	if _, err := Backtest(t.Context(), backtestOptions(t, "missing.plrec", "default"), pool); err == nil ||
		!strings.Contains(err.Error(), "--recording: open missing.plrec") {
		t.Errorf("%v", err)
	}
	_, file := export(t, "nodes=1,pods=1", "default")
	for options, want := range map[string]string{
		",from=1m,to=1m": `to: invalid value "1m": must be more than from`,
		",from=soon":     `from: invalid value "soon": must be a duration of whole seconds`,
		",to=200h":       "must be at most 10m0s, the length of the recording",
		",from=10m":      "found 0 s from second 600 to 600: must be at least 60 s",
		",step=60":       "step",
	} {
		if _, err := Backtest(
			t.Context(),
			backtestOptions(t, file+options, "default"),
			pool,
		); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
}

// BenchmarkDay replays a day of 200 nodes and 6,000 pods. The budget is 60 s.
func BenchmarkDay(b *testing.B) {
	_, file := export(b, "nodes=200,pods=6000,fill=0.8,over=86400,life=43200", "default")
	o := backtestOptions(b, file, "default")
	for b.Loop() {
		if _, err := Jobs(o)[1].Run(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
