package signalfx

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// BenchmarkRead reads 5,000 nodes with 15 samples of both metrics from a server in the same process with
// prepared responses. The first read also requests the series.
func BenchmarkRead(b *testing.B) {
	const nodes = 5000
	var answers [2]map[string][]byte
	for i, metric := range []string{cpu, memory} {
		data, results := make([]string, nodes), make([]string, nodes)
		for n := range nodes {
			points := make([]string, 15)
			for p := range points {
				points[p] = fmt.Sprintf("[%d,%d.123456789]", noon.Add(time.Duration(p-15)*time.Minute).UnixMilli(), (n+7*p)%100)
			}
			data[n] = fmt.Sprintf(`"%s-%05d":[%s]`, metric[:1], n, strings.Join(points, ","))
			results[n] = fmt.Sprintf(`{"id":"%s-%05d","metric":%q,"type":"GAUGE","created":1557743430000,"tags":[],`+
				`"customProperties":{},"dimensions":{"host":"node-%d","kubernetes_cluster":"prod",`+
				`"os.type":"linux"}}`, metric[:1], n, metric, n)
		}
		answers[i] = map[string][]byte{
			"/" + windowPath: []byte(`{"data":{` + strings.Join(data, ",") + `},"errors":[]}`),
			"/" + seriesPath: fmt.Appendf(nil, `{"count":%d,"results":[%s]}`, nodes, strings.Join(results, ",")),
		}
	}
	sent := 0
	for _, answer := range answers {
		sent += len(answer["/"+windowPath])
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := answers[0]
		if strings.Contains(r.URL.Query().Get("query"), memory) {
			answer = answers[1]
		}
		_, _ = w.Write(answer[r.URL.Path])
	}))
	defer server.Close()
	source, err := New(metricprovider.Config{Address: server.URL}, nil)
	must.Succeed(b, err)
	defer source.server.Client().CloseIdleConnections()
	source.now = func() time.Time { return noon }
	read := func(b *testing.B) {
		reading, err := source.Read(b.Context())
		if err != nil || len(reading.Nodes) != nodes || reading.Rejected != 0 {
			b.Fatalf("%d nodes, %d rejected, %v", len(reading.Nodes), reading.Rejected, err)
		}
	}
	bench := func(b *testing.B, bytes int, prepare func()) {
		b.ReportAllocs()
		b.SetBytes(int64(bytes))
		for b.Loop() {
			prepare()
			read(b)
		}
		b.ReportMetric(float64(bytes), "answer-bytes/op")
	}
	b.Run("first", func(b *testing.B) {
		bench(b, sent+len(answers[0]["/"+seriesPath])+len(answers[1]["/"+seriesPath]), func() {
			for _, m := range source.metrics {
				m.catalog.Store(nil)
			}
		})
	})
	b.Run("next", func(b *testing.B) { bench(b, sent, func() {}) })
}
