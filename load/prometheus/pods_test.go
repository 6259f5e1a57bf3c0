package prometheus

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// podQueries identify the two queries of pods.
var podQueries = metricprovider.Queries{PodCPU: "cpu", PodMemory: "memory"}

func newPodSource(t testing.TB, config metricprovider.Config) *PodSource {
	t.Helper()
	s, err := NewPods(config)
	must.Succeed(t, err)
	return s
}

// podSample returns one sample of a pod in namespace default.
func podSample(pod string, value any) string {
	return sample(fmt.Sprintf(`"namespace":"default","pod":%q`, pod), value)
}

func TestReadPods(t *testing.T) {
	usage := func(name string, cpu, memory float64) load.PodUsage {
		return load.PodUsage{Namespace: "default", Name: name, CPU: cpu, Memory: memory}
	}
	one := list(podSample("a", 0.25))
	tests := map[string]struct {
		cpu, memory string
		want        []load.PodUsage
		rejected    int
		err         string
	}{
		"a pod": {one, list(podSample("a", 1<<30)), []load.PodUsage{usage("a", 250, 1<<30)}, 0, ""},
		"sorted": {
			list(podSample("b", 2), podSample("a", 1)), list(podSample("a", 3), podSample("b", 4)),
			[]load.PodUsage{usage("a", 1000, 3), usage("b", 2000, 4)},
			0, "",
		},
		// The rate of a new pod is unknown until the second scrape, and a pod that ended has a rate for some time.
		"only one of the values": {
			list(podSample("a", 1), podSample("ended", 1)), list(podSample("a", 1), podSample("new", 1)),
			[]load.PodUsage{usage("a", 1000, 1)},
			0, "",
		},
		"two series of a pod": {
			list(podSample("a", 1), sample(`"namespace":"default","pod":"a","x":"y"`, 2)), list(podSample("a", 1)),
			[]load.PodUsage{usage("a", 1000, 1)},
			0, "",
		},
		"two clusters": {
			one,
			list(sample(`"namespace":"default","pod":"a","cluster":"a"`, 1), sample(`"namespace":"default","pod":"a","cluster":"b"`, 2)),
			nil,
			0,
			`pod default/a has series with cluster="a" and cluster="b": set selector to those of its cluster, such as cluster="a"`,
		},
		"invalid values": {
			list(podSample("a", 1), podSample("nan", "NaN"), podSample("inf", "+Inf"), podSample("negative", -1), podSample("memory", 1),
				sample(`"namespace":"default"`, 1)),
			list(podSample("a", 1), podSample("nan", 1), podSample("inf", 1), podSample("negative", 1), podSample("memory", "-1")),
			[]load.PodUsage{usage("a", 1000, 1)},
			5, "",
		},
		"no CPU":    {list(), one, nil, 0, "query cpu: no data: check that the metrics of containers are scraped from the kubelets"},
		"no memory": {one, list(), nil, 0, "query memory: no data"},
		"neither":   {list(), list(), nil, 0, "query cpu: no data"},
		"no label pod": {
			list(sample(`"namespace":"default","pod_name":"a"`, 1)), list(sample(`"namespace":"default","pod_name":"a"`, 1)), nil, 0,
			`no pod has both CPU and memory: 1 series of CPU, for example {namespace="default", pod_name="a"}, and 1 of memory`,
		},
		"histograms": {`[{"metric":{},"histogram":[1,{}]}]`, one, nil, 0, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(query string) string { return map[string]string{"cpu": tc.cpu, "memory": tc.memory}[query] })
			got, err := newPodSource(t, metricprovider.Config{Address: s.URL, Queries: podQueries}).ReadPods(t.Context())
			if tc.want == nil {
				if err == nil || !strings.Contains(err.Error(), tc.err) || got.Pods != nil {
					t.Errorf("%v with %d pods, want %s", err, len(got.Pods), tc.err)
				}
				return
			}
			want := load.PodReading{
				Source:   "Prometheus",
				Time:     time.Unix(at, 0).UTC(),
				Window:   5 * time.Minute,
				Pods:     tc.want,
				Rejected: tc.rejected,
			}
			got.Time = got.Time.UTC()
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestPodQueries(t *testing.T) {
	config := metricprovider.Config{
		Address: "http://p", Selector: `cluster="prod"`, RateWindow: metav1.Duration{Duration: 90 * time.Second},
	}
	cpu, memory := newPodSource(t, config).queries("")
	const matchers = `{container!="",container!="POD",pod!="",cluster="prod"}`
	const podMatchers = `{container="",pod!="",cluster="prod"}`
	if want := "(sum by (namespace, pod, cluster) (max by (namespace, pod, cluster, container) (rate(container_cpu_usage_seconds_total" + matchers +
		"[1m30s]))) or max by (namespace, pod, cluster) (rate(container_cpu_usage_seconds_total" + podMatchers +
		"[1m30s]))) and group by (namespace, pod, cluster) " +
		`(container_cpu_usage_seconds_total{pod!="",cluster="prod"} offset 1m30s)`; cpu != want {
		t.Errorf("CPU: %s, want %s", cpu, want)
	}
	if want := "sum by (namespace, pod, cluster) (max by (namespace, pod, cluster, container) (container_memory_working_set_bytes" +
		matchers + ")) or max by (namespace, pod, cluster) (container_memory_working_set_bytes" + podMatchers + ")"; memory != want {
		t.Errorf("memory: %s, want %s", memory, want)
	}
}

func TestNewPodsErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		config metricprovider.Config
		want   string
	}{
		"no address":   {metricprovider.Config{}, `address: required: must be a URL like http://prometheus.monitoring:9090`},
		"short window": {metricprovider.Config{Address: "http://p", RateWindow: metav1.Duration{Duration: 1}}, "rateWindow: invalid value 1ns: must be at least 1s"},
	} {
		if _, err := NewPods(tc.config); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// TestPodBounds checks that responses with too many bytes, values or series are errors that state the bound.
func TestPodBounds(t *testing.T) {
	const row = `{"metric":{},"value":[1,"1"]},`
	for name, tc := range map[string]struct {
		row  string
		rows int
		want string
	}{
		"bytes":  {row + strings.Repeat(" ", 1<<20), 65, "response is larger than 64 MiB"},
		"values": {row + strings.Repeat("[],", 10), 100_000, "response has more than 2000000 values"},
		"series": {row, load.MaxPods + 1, "found 200001 series, maximum is 200000"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := strings.TrimSuffix(strings.TrimRight(strings.Repeat(tc.row, tc.rows), " "), ",")
			s := serve(t, func(string) string { return "[" + rows + "]" })
			_, err := newPodSource(t, metricprovider.Config{Address: s.URL, Queries: podQueries}).ReadPods(t.Context())
			if load.ReasonOf(err) != load.TooLarge || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}

// FuzzReadPods checks that any response gives an error or a valid reading.
func FuzzReadPods(f *testing.F) {
	const envelope = `{"status":"success","data":{"resultType":"vector","result":%s}}`
	f.Add(fmt.Sprintf(envelope, list(podSample("a", 0.5))))
	f.Add(fmt.Sprintf(envelope, list(podSample("a", "NaN"), podSample("a", -1), podSample("", 1))))
	f.Add(fmt.Sprintf(envelope, `[{"metric":{},"value":[1e300,"1e400"]},{"histogram":[1,{}]}]`))
	var response atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, response.Load()) }))
	f.Cleanup(server.Close)
	source := newPodSource(f, metricprovider.Config{Address: server.URL})
	f.Fuzz(func(t *testing.T, text string) {
		response.Store(text)
		reading, err := source.ReadPods(t.Context())
		if err != nil {
			if err.Error() == "" || reading.Pods != nil {
				t.Errorf("error %q with %d pods", err, len(reading.Pods))
			}
			return
		}
		seen := map[[2]string]bool{}
		for _, usage := range reading.Pods {
			key := [2]string{usage.Namespace, usage.Name}
			if usage.Namespace == "" || usage.Name == "" || !usage.Valid() || seen[key] {
				t.Errorf("%+v, seen: %t", usage, seen[key])
			}
			seen[key] = true
		}
	})
}

// BenchmarkRead30000Pods measures one reading of 30,000 pods into a store. Sending the responses is included, computing
// them is not. CPU is measured for the process.
func BenchmarkRead30000Pods(b *testing.B) {
	var rows []string
	for i := range 30_000 {
		labels := fmt.Sprintf(`"namespace":"team-%d","pod":"service-%d-5d9c7b8f6d-x%04d"`, i%100, i%500, i)
		rows = append(rows, sample(labels, 0.123456789012345))
	}
	body := []byte(`{"status":"success","data":{"resultType":"vector","result":` + list(rows...) + `}}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	defer server.Close()
	source := newPodSource(b, metricprovider.Config{Address: server.URL})
	store := load.NewPodStore(time.Hour, func() time.Time { return time.Unix(at, 0) })
	began := measure.CPU()
	b.ReportAllocs()
	for b.Loop() {
		reading, err := source.ReadPods(b.Context())
		if err != nil || len(reading.Pods) != 30_000 {
			b.Fatal(len(reading.Pods), err)
		}
		must.Succeed(b, store.Put(reading))
	}
	b.ReportMetric((measure.CPU()-began).Seconds()/float64(b.N), "CPU-s/reading")
	b.ReportMetric(float64(2*len(body))/(1<<20), "MiB-read")
}
