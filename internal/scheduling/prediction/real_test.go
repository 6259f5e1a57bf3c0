//go:build foreign

package prediction

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	prometheusserver "github.com/plimsoll-k8s/plimsoll/test/support/prometheus"
)

// TestRebuildFromRealPrometheus reads the past usage of a pod from a real Prometheus server: 0.5 cores, and as many MiB as
// seconds have passed, so that a past reading differs from a current one.
func TestRebuildFromRealPrometheus(t *testing.T) {
	began := time.Now()
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// The samples have the time of their values, however late they are scraped.
		now := time.Now().Truncate(time.Millisecond)
		seconds, at := now.Sub(began).Seconds(), now.UnixMilli()
		const labels = `{namespace="default",pod="web-1",container="app"}`
		fmt.Fprintf(w, "container_cpu_usage_seconds_total%s %v %d\ncontainer_memory_working_set_bytes%s %v %d\n", labels, 0.5*seconds, at,
			labels, seconds*(1<<20), at)
	}))
	defer exporter.Close()
	server, err := prometheusserver.Start(t.Context(),
		[]prometheusserver.Target{{Address: strings.TrimPrefix(exporter.URL, "http://"), Path: "/metrics"}}, 500*time.Millisecond)
	must.Succeed(t, err)
	defer server.Stop()
	source, err := prometheus.NewPods(
		metricprovider.Config{Address: server.Address, RateWindow: metav1.Duration{Duration: 4 * time.Second}},
	)
	must.Succeed(t, err)
	// The metrics of 20 seconds and more are known.
	eventually.True(t, "no past readings", nil, func(ctx context.Context) (bool, error) {
		_, err := source.ReadPodsAt(ctx, time.Now().Add(-20*time.Second))
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
	accurate := 0
	for i, r := range readings {
		age := r.Time.Sub(began).Seconds()
		if len(r.Pods) != 1 || r.Pods[0].Name != "web-1" || r.Pods[0].CPU > 550 ||
			r.Pods[0].Memory > (age+1)*(1<<20) ||
			r.Pods[0].Memory < (age-15)*(1<<20) {
			t.Errorf("reading %d, %.1fs after the start: %+v", i, age, r.Pods)
		} else if r.Pods[0].CPU > 450 {
			accurate++
		}
		// A time is left out if the busy machine has not scraped before it.
		if i > 0 && r.Time.Sub(readings[i-1].Time)%(2*time.Second) != 0 {
			t.Errorf("readings at %s and %s", readings[i-1].Time, r.Time)
		}
	}
	// Rates are lower if their window begins before the first scrape, or lacks a scrape that was late.
	if accurate < n/2 {
		t.Errorf("%d of %d readings have a CPU usage near 500 millicores, want half of them: %+v", accurate, n, readings)
	}
}
