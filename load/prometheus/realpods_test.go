//go:build foreign

package prometheus_test

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
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	prometheusserver "github.com/plimsoll-k8s/plimsoll/test/support/prometheus"
)

// cadvisor exposes the container metrics of 20 pods as a kubelet does: pod i has a container that uses 0.1 i cores and i MiB,
// and a sidecar that uses half as much; the pod as a whole and its pause container have series of their own.
func cadvisor(began time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		seconds := time.Since(began).Seconds()
		write := func(metric, kind string, value func(i float64) float64) {
			fmt.Fprintf(w, "# TYPE %s %s\n", metric, kind)
			for i := range 20 {
				for labels, fraction := range map[string]float64{
					`container="app",image="a",id="1"`: 1, `container="sidecar",image="s",id="2"`: 0.5,
					`container="",image="",id="3"`: 1.5, `container="POD",image="pause",id="4"`: 0.01,
				} {
					fmt.Fprintf(w, "%s{namespace=\"team-%d\",pod=\"p-%02d\",%s} %v\n", metric, i%3, i, labels, fraction*value(float64(i)))
				}
			}
			fmt.Fprintf(w, "%s{id=\"/\",container=\"\",namespace=\"\",pod=\"\"} 1000\n", metric)
		}
		write("container_cpu_usage_seconds_total", "counter", func(i float64) float64 { return 0.1 * i * seconds })
		write("container_memory_working_set_bytes", "gauge", func(i float64) float64 { return i * (1 << 20) })
	})
}

// TestRealPrometheusPods reads the usage of pods from a real Prometheus server that scrapes the same kubelet twice, as with
// two scrape configurations, and compares it with the metrics of the kubelet.
func TestRealPrometheusPods(t *testing.T) {
	server := httptest.NewServer(cadvisor(time.Now()))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	real, err := prometheusserver.Start(t.Context(), []prometheusserver.Target{
		{Address: address, Path: "/metrics/cadvisor", Labels: map[string]string{"instance": "node-1", "scraped": "first"}},
		{Address: address, Path: "/metrics/cadvisor", Labels: map[string]string{"instance": "node-1", "scraped": "second"}},
	}, 500*time.Millisecond)
	must.Succeed(t, err)
	defer real.Stop()
	config := metricprovider.Config{Address: real.Address, RateWindow: metav1.Duration{Duration: 10 * time.Second}}
	for name, change := range map[string]func(*metricprovider.Config){
		"default queries": func(*metricprovider.Config) {},
		"a selector":      func(c *metricprovider.Config) { c.Selector = `scraped="first"` },
		"own queries": func(c *metricprovider.Config) {
			c.Queries.PodCPU = `sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{container=~".+",container!="POD",scraped="first"}[10s]))`
			c.Queries.PodMemory = `container_memory_working_set_bytes{container="",pod!="",scraped="first"}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := config
			change(&c)
			source, err := prometheus.NewPods(c)
			must.Succeed(t, err)
			var reading load.PodReading
			var asked time.Time
			var readErr error
			err = wait.PollUntilContextTimeout(
				t.Context(),
				500*time.Millisecond,
				5*time.Minute,
				true,
				func(ctx context.Context) (bool, error) {
					asked = time.Now()
					reading, readErr = source.ReadPods(ctx)
					return readErr == nil && wrongPods(reading) == "", nil
				},
			)
			if err != nil {
				t.Fatalf("%v: %s; %v", err, wrongPods(reading), readErr)
			}
			if !isBetween(reading.Time, asked, time.Now()) || reading.Window != 10*time.Second || reading.Rejected != 0 {
				t.Errorf("read at %s, asked at %s, over %s, %d rejected", reading.Time, asked, reading.Window, reading.Rejected)
			}
		})
	}
}

// wrongPods returns the difference between a reading and the usage that cadvisor exposes, empty if there is none. Prometheus
// extrapolates rates, so that they differ by some percent.
func wrongPods(reading load.PodReading) string {
	if len(reading.Pods) != 20 {
		return fmt.Sprintf("%d pods, want 20", len(reading.Pods))
	}
	for _, usage := range reading.Pods {
		var i int
		if _, err := fmt.Sscanf(usage.Name, "p-%d", &i); err != nil || usage.Namespace != fmt.Sprintf("team-%d", i%3) {
			return fmt.Sprintf("pod %s/%s", usage.Namespace, usage.Name)
		}
		cpu, memory := 150*float64(i), 1.5*float64(i)*(1<<20)
		if math.Abs(usage.CPU-cpu) > 0.05*cpu || usage.Memory != memory {
			return fmt.Sprintf("%+v, want about %v millicores and %v bytes", usage, cpu, memory)
		}
	}
	return ""
}
