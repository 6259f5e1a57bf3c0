package signalfx

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const (
	cpu    = defaultCPUMetric
	memory = defaultMemoryMetric
)

// closeTo compares numbers except for rounding errors.
var closeTo = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })

// texts compares errors by their texts.
var texts = cmp.Comparer(func(a, b error) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
})

func wantError(t *testing.T, err error, reason load.Reason, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("error:\n%v\nwant:\n%s", err, want)
	}
	if got := load.ReasonOf(err); err != nil && got != reason {
		t.Errorf("reason %q, want %q", got, reason)
	}
}

func seconds(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }

func TestNew(t *testing.T) {
	const address = "https://api.us1.signalfx.com"
	nodes := func() ([]*v1.Node, error) { return nil, nil }
	metric := func(field, found string) string {
		return fmt.Sprintf("%s: invalid value %q: must be the name of one metric without wildcards, at most 256 characters", field, found)
	}
	for name, tc := range map[string]struct {
		config  metricprovider.Config
		wantErr string
	}{
		"address only": {metricprovider.Config{}, ""},
		"all fields": {metricprovider.Config{
			CPUMetric: "system.cpu.utilization", MemoryMetric: "a \"b\"", HostDimension: "host.name", Filter: `cluster:"a"`,
			Window: seconds(3600), Step: seconds(300),
		}, ""},
		"every second":   {metricprovider.Config{Window: seconds(1), Step: seconds(1)}, ""},
		"a wildcard":     {metricprovider.Config{CPUMetric: "cpu.*"}, metric("cpuMetric", "cpu.*")},
		"two lines":      {metricprovider.Config{MemoryMetric: "a\nb"}, metric("memoryMetric", "a\nb")},
		"a space":        {metricprovider.Config{CPUMetric: " "}, metric("cpuMetric", " ")},
		"not UTF-8":      {metricprovider.Config{CPUMetric: "\xff"}, metric("cpuMetric", "\xff")},
		"256 characters": {metricprovider.Config{CPUMetric: strings.Repeat("ä", 256)}, ""},
		"257 characters": {metricprovider.Config{CPUMetric: strings.Repeat("a", 257)}, metric("cpuMetric", strings.Repeat("a", 257))},
		"one metric for both": {
			metricprovider.Config{CPUMetric: "a", MemoryMetric: "a"},
			`cpuMetric, memoryMetric: invalid value "a": must be two different metrics`,
		},
		"a dimension of words": {
			metricprovider.Config{HostDimension: "host OR a"},
			`hostDimension: invalid value "host OR a": must be the name of a dimension such as host or host.name`,
		},
		"two minutes":    {metricprovider.Config{Step: seconds(120)}, "step: invalid value 2m0s: must be one of 1s, 1m, 5m, 1h"},
		"a negative one": {metricprovider.Config{Step: seconds(-60)}, "step: invalid value -1m0s: must be one of 1s, 1m, 5m, 1h"},
		"a short window": {metricprovider.Config{Window: seconds(1)}, "window: invalid value 1s: must be at least the step, 1m0s"},
		"a negative window": {
			metricprovider.Config{Window: seconds(-3600)},
			"window: invalid value -1h0m0s: must be at least the step, 1m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.Address = address
			source, err := New(tc.config, nodes)
			if tc.wantErr != "" {
				wantError(t, err, load.Invalid, tc.wantErr)
				return
			}
			must.Succeed(t, err)
			if want := "SignalFx at " + address; source.String() != want {
				t.Errorf("%q, want %q", source, want)
			}
		})
	}
}

func TestQuery(t *testing.T) {
	for name, tc := range map[string]struct {
		config metricprovider.Config
		metric string
		want   string
	}{
		"a metric": {metricprovider.Config{HostDimension: "host"}, "cpu.utilization", `sf_metric:"cpu.utilization" AND host:*`},
		"a filter": {
			metricprovider.Config{HostDimension: "host", Filter: `a:"b" OR a:"c"`},
			"cpu",
			`sf_metric:"cpu" AND host:* AND (a:"b" OR a:"c")`,
		},
		"quotes":      {metricprovider.Config{HostDimension: "host.name"}, `a" OR "b`, `sf_metric:"a\" OR \"b" AND host.name:*`},
		"a backslash": {metricprovider.Config{HostDimension: "host"}, `a\`, `sf_metric:"a\\" AND host:*`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := query(&tc.config, tc.metric); got != tc.want {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestRead(t *testing.T) {
	f := newFake(t,
		// (20+40+60)/3 = 40, sqrt((20^2+0^2+20^2)/3) = sqrt(800/3)
		host("c1", cpu, "node-1", 20, 40, 60),
		// (50+70)/2 = 60, sqrt((10^2+10^2)/2) = 10
		host("m1", memory, "node-1", 50, 70),
		host("c2", cpu, "node-2", 12.5),
	)
	got, err := f.source(t, nil).Read(t.Context())
	must.Succeed(t, err)
	want := load.Reading{
		Source: "SignalFx", Time: noon.Add(-time.Minute), Window: 3 * time.Minute,
		Nodes: map[string]load.Node{
			"node-1": {
				CPU: load.Utilization{Mean: 0.4, StdDev: math.Sqrt(800.0/3) / 100}, HasCPU: true,
				Memory: load.Utilization{Mean: 0.6, StdDev: 0.1}, HasMemory: true,
			},
			"node-2": {CPU: load.Utilization{Mean: 0.125}, HasCPU: true},
		},
		Lost: map[load.Series]error{},
	}
	if diff := cmp.Diff(want, got, closeTo); diff != "" {
		t.Error(diff)
	}
}

// TestNodes reads one node with different samples, and another with a memory utilization of 10%.
func TestNodes(t *testing.T) {
	mean := func(mean, deviation float64) map[string]load.Node {
		return map[string]load.Node{"node-1": {CPU: load.Utilization{Mean: mean, StdDev: deviation}, HasCPU: true}}
	}
	raw := func(points ...any) []fakeSeries {
		return []fakeSeries{{id: "c1", metric: cpu, dimensions: map[string]any{"host": "node-1"}, points: points}}
	}
	for name, tc := range map[string]struct {
		series []fakeSeries
		want   map[string]load.Node
		// rejected samples and stale nodes
		rejected, stale int
		// newest is the age of the newest sample at noon; 0 if the other node has the newest sample
		newest time.Duration
		// covered is the time that the samples of the node cover if it is more than the minute of one sample.
		covered time.Duration
	}{
		// mean 10, sqrt(0)
		"one sample": {series: raw(at(time.Minute, 10)), want: mean(0.1, 0)},
		// (0+100)/2 = 50, sqrt((50^2+50^2)/2) = 50, the maximum
		"0 and 100": {series: raw(at(2*time.Minute, 0), at(time.Minute, 100)), want: mean(0.5, 0.5), covered: 2 * time.Minute},
		// 350 counts as 100: (100+0)/2 = 50
		"over 100": {series: raw(at(2*time.Minute, 350), at(time.Minute, 0)), want: mean(0.5, 0.5), covered: 2 * time.Minute},
		// (30+50)/2 = 40, sqrt((10^2+10^2)/2) = 10; the other four are ignored
		"invalid values": {
			series: raw(at(6*time.Minute, nil), at(5*time.Minute, "NaN"), at(4*time.Minute, -1), at(3*time.Minute, "Infinity"),
				at(2*time.Minute, 30), at(time.Minute, 50)),
			want: mean(0.4, 0.1), rejected: 4, covered: 2 * time.Minute,
		},
		// 1e999 is a valid JSON number, beyond the range of float64
		"too large a number": {
			series: raw(at(2*time.Minute, 30), []any{noon.UnixMilli(), jsonNumber("1e999")}), want: mean(0.3, 0),
			rejected: 1, newest: 2 * time.Minute,
		},
		"invalid samples": {
			series: raw(nil, 7, "a", []any{}, []any{noon.UnixMilli()}, []any{noon.UnixMilli(), 1, 2}, map[string]any{}, []any{"a", 1},
				[]any{-5, 1}, at(time.Minute, 20)),
			want: mean(0.2, 0), rejected: 9,
		},
		"one invalid sample":  {series: raw(at(time.Minute, -1)), rejected: 1},
		"no samples":          {series: raw()},
		"host without a name": {series: []fakeSeries{host("c1", cpu, "")}, rejected: 1},
		"host is a number":    {series: []fakeSeries{{id: "c1", metric: cpu, dimensions: map[string]any{"host": 7}}}, rejected: 1},
		"bounds of the window": {
			series: raw(at(15*time.Minute, 20), at(-time.Minute, 40)), want: mean(0.3, 0.1), newest: -time.Minute, covered: 15 * time.Minute,
		},
		"outside of the window": {
			series: raw(at(15*time.Minute+1, 20), at(-time.Minute-time.Millisecond, 40), at(time.Minute, 10)),
			want:   mean(0.1, 0), rejected: 2,
		},
		"5 minutes old":          {series: raw(at(6*time.Minute, 20), at(5*time.Minute, 40)), want: mean(0.3, 0.1), covered: 2 * time.Minute},
		"older than 5 minutes":   {series: raw(at(5*time.Minute+time.Millisecond, 20)), stale: 1},
		"the newest is rejected": {series: raw(at(6*time.Minute, 20), at(time.Minute, "NaN")), stale: 1, rejected: 1},
		"unordered":              {series: raw(at(time.Minute, 20), at(9*time.Minute, 40)), want: mean(0.3, 0.1), covered: 9 * time.Minute},
		"the newer of two series": {series: []fakeSeries{
			{id: "a", metric: cpu, dimensions: map[string]any{"host": "node-1"}, points: []any{at(2*time.Minute, 10)}},
			{id: "b", metric: cpu, dimensions: map[string]any{"host": "node-1"}, points: []any{at(time.Minute, 20)}},
		}, want: mean(0.2, 0)},
		"the first of two series of equal age": {series: []fakeSeries{
			host("c", cpu, "node-1", 30), host("a", cpu, "node-1", 10),
			host("b", cpu, "node-1", 20),
		}, want: mean(0.1, 0)},
		"an invalid and a valid series": {
			series: []fakeSeries{host("a", cpu, "node-1", -1), host("b", cpu, "node-1", 20)},
			want:   mean(0.2, 0), rejected: 1,
		},
		"stale CPU, fresh memory": {
			series: append(raw(at(9*time.Minute, 10)), host("m1", memory, "node-1", 30)),
			want:   map[string]load.Node{"node-1": {Memory: load.Utilization{Mean: 0.3}, HasMemory: true}},
		},
		"stale CPU and memory": {
			series: append(raw(at(9*time.Minute, 10)),
				fakeSeries{id: "m1", metric: memory, dimensions: map[string]any{"host": "node-1"}, points: []any{at(8*time.Minute, 1)}}),
			stale: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			good := load.Node{CPU: load.Utilization{Mean: 0.1}, HasCPU: true, Memory: load.Utilization{Mean: 0.1}, HasMemory: true}
			series := append([]fakeSeries{host("goodc", cpu, "good", 10), host("goodm", memory, "good", 10)}, tc.series...)
			if tc.newest > time.Minute { // the good node would be newer
				series[0].points, series[1].points = []any{at(tc.newest, 10)}, []any{at(tc.newest, 10)}
			}
			got, err := newFake(t, series...).source(t, nil).Read(t.Context())
			must.Succeed(t, err)
			if tc.newest == 0 {
				tc.newest = time.Minute
			}
			want := load.Reading{
				Source: "SignalFx", Time: noon.Add(-max(0, tc.newest)), Window: max(tc.covered, time.Minute), Rejected: tc.rejected,
				Stale: tc.stale,
				Nodes: map[string]load.Node{"good": good}, Lost: map[load.Series]error{},
			}
			maps.Copy(want.Nodes, tc.want)
			if diff := cmp.Diff(want, got, closeTo); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWindowBegins checks that the window starts at a multiple of the resolution for any time of the read.
func TestWindowBegins(t *testing.T) {
	for _, resolution := range resolutions {
		t.Run(resolution.String(), func(t *testing.T) {
			s := host("c1", cpu, "node-1")
			s.points = []any{at(2*resolution, 90), at(resolution, 20), at(0, 40)}
			source := newFake(t, s).source(t, func(c *metricprovider.Config) {
				c.Step.Duration, c.Window.Duration = resolution,
					resolution
			})
			source.now = func() time.Time { return noon.Add(resolution / 3) }
			got, err := source.Read(t.Context())
			must.Succeed(t, err)
			// At a resolution of 1m the window is 11:59:00 to 12:00:20 and contains the samples of 11:59 and
			// 12:00: (20+40)/2 = 30, sqrt((10^2+10^2)/2) = 10.
			want := map[string]load.Node{"node-1": {CPU: load.Utilization{Mean: 0.3, StdDev: 0.1}, HasCPU: true}}
			if diff := cmp.Diff(want, got.Nodes, closeTo); diff != "" || got.Rejected != 1 {
				t.Errorf("%s%d rejected, want 1", diff, got.Rejected)
			}
		})
	}
}

func TestHosts(t *testing.T) {
	series := []fakeSeries{
		host("c1", cpu, "10.0.0.1", 10), host("c2", cpu, "node-2.example.org", 20), host("c3", cpu, "elsewhere", 30),
		host("m1", memory, "10.0.0.1", 10), host("m2", memory, "node-2.example.org", 20),
	}
	node := func(percent float64) load.Node {
		u := load.Utilization{Mean: percent / 100}
		return load.Node{CPU: u, HasCPU: true, Memory: u, HasMemory: true}
	}
	failure := errors.New("listing nodes: no cluster")
	for name, tc := range map[string]struct {
		nodes    load.Inventory
		want     map[string]load.Node
		rejected int
		wantErr  string
	}{
		"unknown nodes": {nil, map[string]load.Node{
			"10.0.0.1": node(10), "node-2.example.org": node(20),
			"elsewhere": {CPU: load.Utilization{Mean: 0.3}, HasCPU: true},
		}, 0, ""},
		"known nodes": {func() ([]*v1.Node, error) {
			return []*v1.Node{clustertest.Addressed("node-1", "10.0.0.1"), clustertest.Addressed("node-2")}, nil
		}, map[string]load.Node{"node-1": node(10), "node-2": node(20)}, 1, ""},
		"nodes cannot be listed": {func() ([]*v1.Node, error) { return nil, failure }, nil, 0, failure.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			source := newFake(t, series...).source(t, nil)
			source.nodes = tc.nodes
			got, err := source.Read(t.Context())
			if tc.wantErr != "" {
				wantError(t, err, load.Invalid, tc.wantErr)
				return
			}
			must.Succeed(t, err)
			if diff := cmp.Diff(tc.want, got.Nodes, closeTo); diff != "" || got.Rejected != tc.rejected {
				t.Errorf("%s%d rejected, want %d", diff, got.Rejected, tc.rejected)
			}
		})
	}
}

func TestEmpty(t *testing.T) {
	const query = `sf_metric:"cpu.utilization" AND host:*`
	old := host("c1", cpu, "node-1")
	old.points = []any{at(9*time.Minute, 10)}
	for name, tc := range map[string]struct {
		series []fakeSeries
		change func(*metricprovider.Config)
		reason load.Reason
		want   string
	}{
		"no series": {
			nil, nil, load.Empty,
			"query " + query + ": no samples in the last 15m0s: " + advice,
		},
		"none match the filter": {
			[]fakeSeries{host("c1", cpu, "node-1", 10)},
			func(c *metricprovider.Config) { c.Filter = ` cluster:"b" ` }, load.Empty,
			"query " + query + ` AND (cluster:"b"): no samples in the last 15m0s: ` + advice,
		},
		"no nodes": {
			[]fakeSeries{host("c1", cpu, "node-1", 10)},
			nil, load.Empty,
			"query " + query + ": none of the 1 series belongs to a node: " + advice,
		},
		"all stale": {[]fakeSeries{old}, nil, load.Empty, "query " + query + ": the newest samples of all nodes (1) are older than 5m0s"},
		"invalid": {[]fakeSeries{host("c1", cpu, "node-1", -1)}, nil, load.Invalid, "query " + query +
			": no valid samples: must be percent, 0 to 100, in the last 15m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, append(tc.series, host("m1", memory, "node-1", 10))...)
			source := f.source(t, tc.change)
			if name == "no nodes" {
				source.nodes = func() ([]*v1.Node, error) { return []*v1.Node{clustertest.Addressed("other")}, nil }
			}
			_, err := source.read(t.Context(), source.metrics[0], mustResolve(t, source), noon)
			wantError(t, err, tc.reason, tc.want)
		})
	}
}

func mustResolve(t *testing.T, source *Source) func(string) (string, bool) {
	t.Helper()
	resolve, err := source.resolver()
	must.Succeed(t, err)
	return resolve
}
