package prometheus

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// BenchmarkPoll5000Nodes measures one poll of 5,000 nodes, which are matched by address, into a store. Sending the
// response is included, generating it is not. CPU is measured for the process; the growth is the memory allocated
// during the poll, garbage included, which is an upper bound of the memory in use.
func BenchmarkPoll5000Nodes(b *testing.B) {
	var rows []string
	var machines []*v1.Node
	for i := range 5000 {
		address := fmt.Sprintf("10.1.%d.%d", i/250, i%250)
		machines = append(machines, clustertest.Addressed(fmt.Sprintf("node-%04d.example.com", i), address))
		rows = append(rows, sample(fmt.Sprintf(`"instance":"%s:9100"`, address), 0.123456789012345))
	}
	body := []byte(`{"status":"success","data":{"resultType":"vector","result":` + list(rows...) + `}}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	defer server.Close()
	source, err := New(metricprovider.Config{Address: server.URL}, func() ([]*v1.Node, error) { return machines, nil })
	must.Succeed(b, err)
	store := load.NewStore(time.Hour, func() time.Time { return time.Unix(at, 0) })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := measure.CPU()
	for b.Loop() {
		reading, err := source.Read(b.Context())
		if err != nil || len(reading.Nodes) != 5000 {
			b.Fatal(len(reading.Nodes), err)
		}
		must.Succeed(b, store.Put(reading))
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric((measure.CPU()-began).Seconds()/float64(b.N), "CPU-s/poll")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/(1<<20), "MiB/poll")
	b.ReportMetric(float64(4*len(body))/(1<<20), "MiB-read/poll")
	if names := strings.Count(string(body), "instance"); names != 5000 {
		b.Fatal(names)
	}
}
