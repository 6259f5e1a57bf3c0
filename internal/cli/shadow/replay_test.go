package shadow

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/record"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/shadow"
	"github.com/plimsoll-k8s/plimsoll/load/endpoint"
	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestPending has 30 finished recordings of an hour, one that is being written, and one that is older than the results that are kept. The
// last 24 that are finished are pending, the newest first. Their results do not make older ones pending.
func TestPending(t *testing.T) {
	folder, start := t.TempDir(), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	name := func(hour int) string {
		return start.Add(time.Duration(hour)*time.Hour).Format("20060102T150405Z") + ".ndjson.gz"
	}
	for hour := range 31 {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, name(hour)), nil, 0o600))
	}
	must.Succeed(t, os.WriteFile(filepath.Join(folder, name(-500)), nil, 0o600))
	store, err := shadow.OpenStore(folder, 365*24*time.Hour)
	must.Succeed(t, err)
	s := &server{options: &options{folder: folder, keep: 7}, store: store}
	s.current.Store(filepath.Join(folder, name(30)))
	pending := func() (files []string) {
		t.Helper()
		names, err := s.pending(start.Add(32 * time.Hour))
		must.Succeed(t, err)
		for _, name := range names {
			files = append(files, filepath.Base(name))
		}
		return files
	}
	var want []string
	for hour := range maxPending {
		want = append(want, name(29-hour))
	}
	if diff := cmp.Diff(want, pending()); diff != "" {
		t.Error(diff)
	}
	for i, file := range want[1:] {
		w := &shadow.Window{Part: result.Part{From: start.Add(time.Duration(i) * time.Hour)}, File: file}
		must.Succeed(t, store.Add(w, start))
	}
	if got := pending(); !slices.Equal(got, want[:1]) {
		t.Errorf("pending %s", fmt.Sprint(got))
	}
}

// TestOutcomes reads outcomes from Prometheus: throttling of 7 s, no series of CPU pressure, and an error for memory pressure. It
// stores no result if the process ends while they are read: the next process replays the window again.
func TestOutcomes(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	interrupted := false
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if interrupted {
			stop()
		}
		result := ""
		switch query := r.FormValue("query"); query {
		case `sum(increase(container_cpu_cfs_throttled_seconds_total{container!="",cluster="a"}[3600s]))`:
			result = `{"metric":{},"value":[0,"7"]}`
		case `sum(increase(container_pressure_cpu_waiting_seconds_total{id="/",cluster="a"}[3600s]))`:
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, result)
	}))
	defer api.Close()
	client, err := prometheus.NewClient(metricprovider.Config{Address: api.URL}, endpoint.Options{MaxBytes: 1 << 20})
	must.Succeed(t, err)
	store, err := shadow.OpenStore(t.TempDir(), 365*24*time.Hour)
	must.Succeed(t, err)
	from := time.Now().Add(-2 * time.Hour)
	s := &server{
		options: &options{days: 7, run: func(_ context.Context, jobs []compare.Job) ([]*result.Run, error) {
			runs := make([]*result.Run, len(jobs))
			for i := range runs {
				runs[i] = &result.Run{Recorded: &result.Recorded{Part: &result.Part{From: from, To: from.Add(time.Hour)}}}
			}
			return runs, nil
		}},
		settings: &record.FollowConfig{Log: func(line string) { t.Error(line) }}, out: io.Discard, store: store,
		profiles: []engine.NamedConfig{{Name: "default"}, {Name: "predicted"}}, prometheus: client, matchers: `cluster="a"`,
	}
	must.Succeed(t, s.replay(ctx, "first.ndjson.gz"))
	outcomes := store.Windows(time.Time{})[0].Outcomes
	if v := outcomes.ThrottledSeconds; v == nil || *v != 7 || outcomes.CPUPressureSeconds != nil || outcomes.MemoryPressureSeconds != nil ||
		len(outcomes.Missing) != 2 || outcomes.Missing[0] != "container_pressure_cpu_waiting_seconds_total: the server has no such series" {
		t.Errorf("%+v", outcomes)
	}
	interrupted = true
	if err := s.replay(ctx, "second.ndjson.gz"); err == nil || store.Has("second.ndjson.gz") {
		t.Errorf("error %v, stored %t", err, store.Has("second.ndjson.gz"))
	}
}
