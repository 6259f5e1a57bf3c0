package history

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	prometheusserver "github.com/plimsoll-k8s/plimsoll/internal/embedded/prometheus"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

// TestRebuildFromRealPrometheus reads the past usage of a pod from a real Prometheus server: 0.5 cores, and as many MiB as
// seconds have passed, by which a reading of the past differs from one of the present.
func TestRebuildFromRealPrometheus(t *testing.T) {
	began := time.Now()
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		seconds := time.Since(began).Seconds()
		const labels = `{namespace="default",pod="web-1",container="app"}`
		fmt.Fprintf(
			w,
			"container_cpu_usage_seconds_total%s %v\ncontainer_memory_working_set_bytes%s %v\n",
			labels,
			0.5*seconds,
			labels,
			seconds*(1<<20),
		)
	}))
	defer exporter.Close()
	server, err := prometheusserver.Start(t.Context(),
		[]prometheusserver.Target{{Address: strings.TrimPrefix(exporter.URL, "http://"), Path: "/metrics"}}, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	source, err := prometheus.NewPods(
		metricprovider.Config{Address: server.Address, RateWindow: metav1.Duration{Duration: 4 * time.Second}},
	)
	if err != nil {
		t.Fatal(err)
	}
	// The metrics of 10 seconds and more are known.
	eventually.True(t, "no past readings", nil, func(ctx context.Context) (bool, error) {
		_, err := source.ReadPodsAt(ctx, time.Now().Add(-10*time.Second))
		if load.ReasonOf(err) == load.Empty {
			err = nil
			return false, err
		}
		return err == nil, err
	})
	now := time.Now()
	var readings []load.PodReading
	// 20 minutes before, there was no server.
	n, err := rebuild(t.Context(), source, now, 20*time.Minute, 2*time.Second, func(r *load.PodReading) { readings = append(readings, *r) })
	if err != nil || n != len(readings) || n < 5 {
		t.Fatalf("%d readings, %v; want at least 5", n, err)
	}
	for i, r := range readings {
		age := r.Time.Sub(began).Seconds()
		// The first rates are of windows that begin before the first scrape.
		if len(r.Pods) != 1 || r.Pods[0].Name != "web-1" || i > 2 && math.Abs(r.Pods[0].CPU-500) > 50 ||
			r.Pods[0].Memory > (age+1)*(1<<20) ||
			r.Pods[0].Memory < (age-15)*(1<<20) {
			t.Errorf("reading %d, %.1fs after the start: %+v", i, age, r.Pods)
		}
		if i > 0 && r.Time.Sub(readings[i-1].Time) != 2*time.Second {
			t.Errorf("readings at %s and %s", readings[i-1].Time, r.Time)
		}
	}
}
