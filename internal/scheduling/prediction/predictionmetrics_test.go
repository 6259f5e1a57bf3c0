package prediction

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestObserveError checks the buckets: 0.55 - 0.5 = 0.05 is a small, 0.3 - 0.7 = -0.4 a large error.
func TestObserveError(t *testing.T) {
	m := NewMetrics(nil)
	for _, o := range []struct{ predicted, measured float64 }{{0.5, 0.55}, {0.7, 0.3}, {0.5, 0.5}, {0, 9}, {math.NaN(), 0.5}} {
		m.ObserveError(v1.ResourceCPU, o.predicted, o.measured)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%d families, %v; want only the errors", len(families), err)
	}
	histogram := families[0].GetMetric()[0].GetHistogram()
	if histogram.GetSampleCount() != 4 {
		t.Errorf("%d observations, want 4", histogram.GetSampleCount())
	}
	for bound, want := range map[float64]uint64{-0.5: 0, -0.3: 1, 0: 2, 0.02: 2, 0.1: 3, 0.5: 3} {
		for _, bucket := range histogram.GetBucket() {
			if bucket.GetUpperBound() == bound && bucket.GetCumulativeCount() != want {
				t.Errorf("%d observations up to %v, want %d", bucket.GetCumulativeCount(), bound, want)
			}
		}
	}
}

func TestWatchHistory(t *testing.T) {
	m := NewMetrics(func() time.Time { return noon })
	ctx, cancel := context.WithCancel(t.Context())
	state := History{Workloads: 7}
	m.WatchHistory(ctx, func() History { return state })
	values := func() string {
		text, err := testutil.CollectAndFormat(m, expfmt.TypeTextPlain, "plimsoll_prediction_workloads",
			"plimsoll_prediction_history_age_seconds",
			"plimsoll_prediction_history_saved_timestamp_seconds", "plimsoll_prediction_history_saved_bytes",
			"plimsoll_prediction_history_dropped_workloads", "plimsoll_prediction_history_ignored_workloads")
		must.Succeed(t, err)
		var out []string
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") {
				out = append(out, strings.TrimPrefix(strings.TrimSpace(line), "plimsoll_prediction_"))
			}
		}
		return strings.Join(out, ", ")
	}
	if got, want := values(), "history_ignored_workloads 0, workloads 7"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	state = History{Workloads: 9, Updated: noon.Add(-time.Minute), Saved: noon, SavedBytes: 1234, Dropped: 2}
	want := "history_age_seconds 60, history_dropped_workloads 2, history_ignored_workloads 0, history_saved_bytes 1234, history_saved_timestamp_seconds 1.7723664e+09, workloads 9"
	if got := values(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	cancel()
	eventually.True(t, "the history is still exposed", nil, func(context.Context) (bool, error) { return values() == "", nil })
}

// TestNilMetrics checks that a simulation, which has no metrics, can use the same code.
func TestNilMetrics(*testing.T) {
	var m *Metrics
	m.ObserveError(v1.ResourceMemory, 0.5, 0.6)
	m.WatchHistory(context.Background(), nil)
}
