package metricsserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// BenchmarkRead30000Pods measures one reading of 30,000 pods with a sidecar each through the scheduler's client, into a
// store. Sending the response is included. CPU is measured for the process, and kept-MiB is the memory of the reading.
func BenchmarkRead30000Pods(b *testing.B) {
	var items []string
	for i := range 30_000 {
		name := fmt.Sprintf("service-%d-5d9c7b8f6d-x%04d", i%500, i)
		items = append(items,
			item(name, time.Now(), "15.04s", `"cpu":"123456789n","memory":"123456Ki"`, `"cpu":"1234n","memory":"12345Ki"`))
	}
	body := []byte(listOf(items...))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	defer server.Close()
	client, err := metricsclient.NewForConfig(&rest.Config{Host: server.URL})
	must.Succeed(b, err)
	source, err := NewPods(OpenPods(client.MetricsV1beta1().RESTClient()))
	must.Succeed(b, err)
	store := load.NewPodStore(time.Hour, nil)
	before := measure.Heap()
	began := measure.CPU()
	b.ReportAllocs()
	for b.Loop() {
		reading, err := source.ReadPods(context.Background())
		if err != nil || len(reading.Pods) != 30_000 {
			b.Fatal(len(reading.Pods), err)
		}
		must.Succeed(b, store.Put(reading))
	}
	b.ReportMetric((measure.CPU()-began).Seconds()/float64(b.N), "CPU-s/reading")
	b.ReportMetric(float64(len(body))/(1<<20), "MiB-read")
	b.ReportMetric(float64(measure.Heap()-before)/(1<<20), "kept-MiB")
	runtime.KeepAlive(store)
	runtime.KeepAlive(body)
}
