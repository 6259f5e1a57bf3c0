package monitoring

import (
	"cmp"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"

	"github.com/plimsoll-k8s/plimsoll/internal/controllers/agent"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/placement"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/slack"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/shadow"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/service"
	"github.com/plimsoll-k8s/plimsoll/load/telemetry"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// metric is a registered metric.
type metric struct {
	name, kind, help string
	labels           []string
}

// section is a section of docs/metrics.md with the metrics that a component registers.
type section struct {
	name       string
	collectors func(t *testing.T) []prometheus.Collector
}

// sections has all metrics of Plimsoll by component.
var sections = []section{
	{"scheduler", func(t *testing.T) []prometheus.Collector {
		is := informers.NewSharedInformerFactory(nil, 0)
		must.Succeed(t, is.Core().V1().Nodes().Informer().GetIndexer().Add(schedtest.Node("a", "cpu", "1", "memory", "1Gi")))
		c := &shared.Collector{}
		c.Watch(t.Context(), is, v1.DefaultSchedulerName, noRisk{})
		return []prometheus.Collector{c}
	}},
	{"prediction", func(t *testing.T) []prometheus.Collector {
		m := prediction.NewMetrics(nil)
		m.ObserveError(v1.ResourceCPU, 0, 0)
		m.WatchHistory(t.Context(), func() prediction.History {
			return prediction.History{Updated: time.Now(), Saved: time.Now()}
		})
		return []prometheus.Collector{m}
	}},
	{"load", func(t *testing.T) []prometheus.Collector {
		store, c := load.NewStore(time.Hour, nil), &telemetry.Collector{}
		must.Succeed(t, store.Put(load.Reading{Time: time.Now(), Nodes: map[string]load.Node{"idle": {HasCPU: true}}}))
		c.Watch(t.Context(), "test", store)
		pods := load.NewPodStore(time.Hour, nil)
		must.Succeed(t, pods.Put(load.PodReading{Time: time.Now()}))
		c.Watch(t.Context(), "test", pods)
		return []prometheus.Collector{c}
	}},
	{"load-watcher", registered(func(r prometheus.Registerer) {
		service.New(
			service.Config{Store: load.NewStore(time.Hour, nil), State: &service.State{}, Metrics: http.NotFoundHandler(), Registry: r},
		)
	})},
	{"slack", registered(func(r prometheus.Registerer) { slack.New(nil, nil, r, "", "") })},
	{"placement", registered(func(r prometheus.Registerer) { placement.New(nil, nil, nil, r, placement.AdoptAll) })},
	{"shadow", func(*testing.T) []prometheus.Collector {
		return []prometheus.Collector{&shadow.Collector{Current: func() *shadow.Report {
			return &shadow.Report{
				Newest:   &shadow.Window{},
				Result:   &result.Result{Scenario: result.Scenario{Profiles: []result.Profile{{Name: "predicted"}}}},
				Verdicts: []shadow.Verdict{{Verdict: result.Verdict{Candidate: "predicted"}}},
			}
		}}}
	}},
	{"agent", registered(func(r prometheus.Registerer) { agent.New(agent.Options{Hub: &agent.Hub{}}, nil, r) })},
}

// noRisk evaluates every node to risk 0.
type noRisk struct{}

func (noRisk) Risk(*cache.NodeSums) float64 { return 0 }

// recorder records registered collectors.
type recorder struct{ collectors []prometheus.Collector }

func (r *recorder) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return nil
}

func (r *recorder) MustRegister(cs ...prometheus.Collector) {
	r.collectors = append(r.collectors, cs...)
}
func (r *recorder) Unregister(prometheus.Collector) bool { return false }

func registered(make func(prometheus.Registerer)) func(*testing.T) []prometheus.Collector {
	return func(*testing.T) []prometheus.Collector {
		r := &recorder{}
		make(r)
		return r.collectors
	}
}

// description parses the string representation of a Desc, which has no method for its name.
var description = regexp.MustCompile(
	`^Desc\{fqName: "([^"]+)", help: "((?:[^"\\]|\\.)*)", unit: "[^"]*", constLabels: \{\}, variableLabels: \{([^}]*)\}`,
)

// metricsOf returns the metrics of a section sorted by name.
func metricsOf(t *testing.T, s section) []metric {
	t.Helper()
	var out []metric
	for _, collector := range s.collectors(t) {
		kinds := kindsOf(t, collector)
		descs := make(chan *prometheus.Desc, 100)
		collector.Describe(descs)
		close(descs)
		for desc := range descs {
			found := description.FindStringSubmatch(desc.String())
			if found == nil {
				t.Fatalf("%s: found %s", s.name, desc)
			}
			m := metric{name: found[1], help: found[2], kind: cmp.Or(kinds[""], kinds[found[1]])}
			if found[3] != "" {
				m.labels = strings.Split(found[3], ",")
			}
			if m.kind == "" {
				t.Errorf("%s is described but not collected", m.name)
			}
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return out
}

// kindsOf returns the types of a collector's metrics by name, or by "" if all have the same type.
func kindsOf(t *testing.T, collector prometheus.Collector) map[string]string {
	t.Helper()
	switch collector.(type) {
	case *prometheus.GaugeVec, prometheus.Gauge:
		return map[string]string{"": "gauge"}
	case *prometheus.CounterVec, prometheus.Counter:
		return map[string]string{"": "counter"}
	case *prometheus.HistogramVec, prometheus.Histogram:
		return map[string]string{"": "histogram"}
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	must.Succeed(t, err)
	kinds := map[string]string{}
	for _, family := range families {
		kinds[family.GetName()] = strings.ToLower(family.GetType().String())
	}
	return kinds
}

// table returns the metrics as a table of docs/metrics.md.
func table(metrics []metric) string {
	var b strings.Builder
	b.WriteString("| name | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range metrics {
		labels := "–"
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, labels, strings.TrimPrefix(m.help, "[ALPHA] "))
	}
	return b.String()
}

var update = flag.Bool("update", false, "write the metrics there are into docs/metrics.md")

// TestMetricsAreDocumented checks that docs/metrics.md has exactly the registered metrics.
func TestMetricsAreDocumented(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "metrics.md")
	raw, err := os.ReadFile(file)
	must.Succeed(t, err)
	text := string(raw)
	for _, s := range sections {
		begin, end := "<!-- metrics of "+s.name+" -->\n", "<!-- end of "+s.name+" -->\n"
		before, rest, ok := strings.Cut(text, begin)
		is, after, ended := strings.Cut(rest, end)
		if !ok || !ended {
			t.Fatalf("docs/metrics.md has no part between %s and %s", begin, end)
		}
		want := table(metricsOf(t, s))
		if is != want && !*update {
			t.Errorf("docs/metrics.md, section %s:\n%s\nwant (update with go test ./test/monitoring -update)\n%s", s.name, is, want)
		}
		text = before + begin + want + end + after
	}
	if *update {
		must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
	}
}

// TestMetricsFollowTheConventions checks the conventions of Prometheus and Kubernetes for names, types
// and help texts.
func TestMetricsFollowTheConventions(t *testing.T) {
	var text strings.Builder
	encoder := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, s := range sections {
		for _, m := range metricsOf(t, s) {
			if !strings.HasPrefix(m.name, "plimsoll_") || !strings.HasPrefix(m.help, "[ALPHA] ") {
				t.Errorf("%s: %s: want the prefix plimsoll_ and a help text that starts with the stability level", m.name, m.help)
			}
			must.Succeed(t, encoder.Encode(
				&dto.MetricFamily{Name: &m.name, Help: &m.help, Type: typeOf(t, m), Metric: []*dto.Metric{sampleOf(m)}},
			))
		}
	}
	problems, err := promlint.New(strings.NewReader(text.String())).Lint()
	must.Succeed(t, err)
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

func typeOf(t *testing.T, m metric) *dto.MetricType {
	t.Helper()
	kind, ok := dto.MetricType_value[strings.ToUpper(m.kind)]
	if !ok {
		t.Fatalf("%s is a %q", m.name, m.kind)
	}
	return dto.MetricType(kind).Enum()
}

// sampleOf returns a sample of a metric.
func sampleOf(m metric) *dto.Metric {
	sample := &dto.Metric{}
	for i := range m.labels {
		sample.Label = append(sample.Label, &dto.LabelPair{Name: &m.labels[i], Value: new("x")})
	}
	switch m.kind {
	case "gauge":
		sample.Gauge = &dto.Gauge{Value: new(1.0)}
	case "counter":
		sample.Counter = &dto.Counter{Value: new(1.0)}
	default:
		sample.Histogram = &dto.Histogram{SampleCount: new(uint64(1)), SampleSum: new(1.0)}
	}
	return sample
}

// TestMetricsAreUnique checks that no two components register a metric of the same name.
func TestMetricsAreUnique(t *testing.T) {
	names := map[string]string{}
	for _, s := range sections {
		for _, m := range metricsOf(t, s) {
			if other, taken := names[m.name]; taken {
				t.Errorf("%s is registered by %s and by %s", m.name, other, s.name)
			}
			names[m.name] = s.name
		}
	}
	if len(names) < 30 {
		t.Errorf("%d metrics found", len(names))
	}
}
