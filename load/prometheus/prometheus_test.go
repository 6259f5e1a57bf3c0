package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/endpoint"
	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// server is a fake Prometheus server that responds from a table. TestRealPrometheus uses a real one.
type server struct {
	*httptest.Server
	mu sync.Mutex
	// answer returns the result of a query as JSON.
	answer func(query string) string
	asked  []string
}

func serve(t *testing.T, answer func(query string) string) *server {
	t.Helper()
	s := &server{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.URL.Path != "/api/v1/query" || r.Form.Get("time") != "" {
			t.Errorf("unexpected request %s, %v", r.URL, r.Form)
		}
		s.mu.Lock()
		s.asked = append(s.asked, r.Form.Get("query"))
		answer := s.answer(r.Form.Get("query"))
		s.mu.Unlock()
		// A large answer is not formatted, and other queries do not wait for it: the client expects the first byte soon.
		for _, text := range []string{`{"status":"success","data":{"resultType":"vector","result":`, answer, `}}`} {
			_, _ = io.WriteString(w, text)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// customQueries are queries that identify the series.
var customQueries = metricprovider.Queries{CPUAvg: "cpu_mean", CPUStd: "cpu_std", MemoryAvg: "memory_mean", MemoryStd: "memory_std"}

func newSource(t *testing.T, config metricprovider.Config, nodes load.Inventory) *Source {
	t.Helper()
	s, err := New(config, nodes)
	must.Succeed(t, err)
	return s
}

const at = 1795239886

// sample returns one sample of a result, labels as JSON.
func sample(labels string, value any) string {
	return fmt.Sprintf(`{"metric":{%s},"value":[%d,"%v"]}`, labels, at, value)
}

func list(samples ...string) string { return "[" + strings.Join(samples, ",") + "]" }

func TestRead(t *testing.T) {
	const node1 = `"node":"node-1"`
	all := func(value any) func(string) string {
		return func(string) string { return list(sample(node1, value)) }
	}
	node := func(cpu, cpuStdDev, memory, memoryStdDev float64) load.Node {
		return load.Node{
			CPU: load.Utilization{Mean: cpu, StdDev: cpuStdDev}, Memory: load.Utilization{Mean: memory, StdDev: memoryStdDev},
			HasCPU: true, HasMemory: true,
		}
	}
	half := map[string]load.Node{"node-1": node(0.5, 0.5, 0.5, 0.5)}
	for name, tc := range map[string]struct {
		answer func(query string) string
		want   map[string]load.Node
		// rejected values, and lost series with a part of the reason.
		rejected int
		lost     map[load.Series]string
		wantErr  string
	}{
		"a node": {all(0.5), half, 0, nil, ""},
		"one value per series": {
			func(query string) string {
				values := map[string]float64{"cpu_mean": 0.1, "cpu_std": 0.02, "memory_mean": 0.3, "memory_std": 0.04}
				return list(sample(node1, values[query]))
			},
			map[string]load.Node{"node-1": node(0.1, 0.02, 0.3, 0.04)},
			0, nil, "",
		},
		"slightly above one":  {all(1.02), map[string]load.Node{"node-1": node(1, 1, 1, 1)}, 0, nil, ""},
		"slightly below zero": {all(-0.001), map[string]load.Node{"node-1": node(0, 0, 0, 0)}, 0, nil, ""},
		"percent":             {all(43), nil, 0, nil, "found 43 for node node-1: must be a fraction"},
		"negative":            {all(-0.5), nil, 0, nil, "such as -0.5"},
		"infinite":            {all("+Inf"), nil, 0, nil, "such as +Inf"},
		"not a number":        {all("NaN"), nil, 0, nil, "all values are outside [0, 1], such as NaN"},
		"no series": {
			func(string) string { return "[]" }, nil, 0, nil, "query cpu_mean: no data: check that node-exporter is scraped",
		},
		"series of no node": {
			func(string) string { return list(sample(`"pod":"a"`, 0.5)) }, nil, 0, nil,
			`none of the 1 series belongs to a node, for example {pod="a"}: set nodeLabel`,
		},
		"one invalid value": {func(string) string {
			return list(sample(node1, 0.5), sample(`"node":"liar"`, "NaN"), sample(`"node":"endless"`, "+Inf"))
		}, half, 8, nil, ""},
		// 1.2 % of an idle node would be 120 %.
		"percent of a busy node": {
			func(string) string { return list(sample(node1, 1.2), sample(`"node":"node-2"`, 62)) },
			nil, 0, nil, "found 62 for node node-2: must be a fraction of the node's capacity in [0, 1]",
		},
		"two clusters": {
			func(string) string {
				return list(sample(node1+`,"cluster":"a"`, 0.1), sample(node1+`,"cluster":"b"`, 0.9))
			},
			nil, 0, nil,
			`node node-1 has series with cluster="a" and cluster="b": set selector to those of its cluster, such as cluster="a"`,
		},
		"two series of a node": {
			func(string) string { return list(sample(node1+`,"job":"a"`, 0.5), sample(node1+`,"job":"b"`, 0.25)) },
			half,
			0, nil, "",
		},
		"a name of quotes and braces": {
			func(string) string { return list(sample(`"node":"x\"} or up{"`, 0.5)) },
			map[string]load.Node{`x"} or up{`: half["node-1"]},
			0, nil, "",
		},
		"no memory": {
			func(query string) string {
				if strings.HasPrefix(query, "memory") {
					return "[]"
				}
				return list(sample(node1, 0.5))
			},
			map[string]load.Node{"node-1": {CPU: load.Utilization{Mean: 0.5, StdDev: 0.5}, HasCPU: true}},
			0,
			map[load.Series]string{load.MemoryMean: "no data", load.MemoryStdDev: "no data"},
			"",
		},
		"no means": {
			func(query string) string {
				if strings.HasSuffix(query, "mean") {
					return "[]"
				}
				return list(sample(node1, 0.5))
			},
			nil, 0, nil, "query cpu_mean: no data: check that node-exporter is scraped",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(t, metricprovider.Config{Address: serve(t, tc.answer).URL, Queries: customQueries}, nil)
			got, err := s.Read(t.Context())
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %s", err, tc.wantErr)
				}
				return
			}
			must.Succeed(t, err)
			if diff := cmp.Diff(tc.want, got.Nodes); diff != "" {
				t.Error(diff)
			}
			if got.Rejected != tc.rejected || len(got.Lost) != len(tc.lost) || !got.Time.Equal(time.Unix(at, 0)) {
				t.Errorf("rejected %d, want %d; lost %v; at %s", got.Rejected, tc.rejected, got.Lost, got.Time)
			}
			for series, want := range tc.lost {
				if lost := got.Lost[series]; lost == nil || !strings.Contains(lost.Error(), want) {
					t.Errorf("lost %s: %v, want %s", series, lost, want)
				}
			}
		})
	}
}

func TestNodeOfSeries(t *testing.T) {
	inventory := func() ([]*v1.Node, error) {
		return []*v1.Node{
			clustertest.Addressed("node-1", "10.0.0.1", "fd00::1", "node-1.internal"),
			clustertest.Addressed("node-2", "10.0.0.2", "10.0.0.9"),
			clustertest.Addressed("node-3", "10.0.0.9"), // claims the address of another
		}, nil
	}
	for name, tc := range map[string]struct {
		labels string
		config metricprovider.Config
		nodes  load.Inventory
		want   string // none is ""
	}{
		"name":                         {`"node":"node-1"`, metricprovider.Config{}, inventory, "node-1"},
		"name in another label":        {`"kubernetes_node":"node-1"`, metricprovider.Config{}, inventory, "node-1"},
		"configured label":             {`"node":"x","host":"node-1"`, metricprovider.Config{NodeLabel: "host"}, nil, "node-1"},
		"without the configured label": {`"node":"node-1"`, metricprovider.Config{NodeLabel: "host"}, nil, ""},
		"address and port":             {`"instance":"10.0.0.1:9100"`, metricprovider.Config{}, inventory, "node-1"},
		"an IPv6 address and port":     {`"instance":"[fd00::1]:9100"`, metricprovider.Config{}, inventory, "node-1"},
		"an address":                   {`"instance":"10.0.0.2"`, metricprovider.Config{}, inventory, "node-2"},
		"a name and port":              {`"instance":"node-1:9100"`, metricprovider.Config{}, inventory, "node-1"},
		"a host name":                  {`"instance":"node-1.internal:9100"`, metricprovider.Config{}, inventory, "node-1"},
		"a longer name":                {`"instance":"node-2.example.com:9100"`, metricprovider.Config{}, inventory, "node-2"},
		"an address of two nodes":      {`"instance":"10.0.0.9:9100"`, metricprovider.Config{}, inventory, ""},
		"unknown address":              {`"instance":"192.0.2.1:9100"`, metricprovider.Config{}, inventory, ""},
		"unknown name":                 {`"node":"stranger"`, metricprovider.Config{}, inventory, ""},
		"address from node_uname_info": {`"instance":"10.0.0.7:9100"`, metricprovider.Config{}, nil, "node-7"},
		"name, nodes unknown":          {`"instance":"node-1:9100"`, metricprovider.Config{}, nil, "node-1"},
		"no label":                     {`"job":"a"`, metricprovider.Config{}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.Queries = customQueries
			tc.config.Address = serve(t, func(query string) string {
				if strings.Contains(query, "node_uname_info") {
					return list(sample(`"instance":"10.0.0.7:9100","nodename":"node-7"`, 1))
				}
				return list(sample(tc.labels, 0.5), sample(`"node":"node-3","host":"node-3"`, 0.5))
			}).URL
			got, err := newSource(t, tc.config, tc.nodes).Read(t.Context())
			must.Succeed(t, err)
			delete(got.Nodes, "node-3")
			if _, found := got.Nodes[tc.want]; found != (tc.want != "") || len(got.Nodes) > 1 {
				t.Errorf("%v, want %q", got.Nodes, tc.want)
			}
		})
	}
	t.Run("the nodes cannot be listed", func(t *testing.T) {
		s := newSource(t, metricprovider.Config{Address: "http://127.0.0.1:1"}, func() ([]*v1.Node, error) { return nil, errors.New("no") })
		if _, err := s.Read(t.Context()); err == nil || err.Error() != "no" {
			t.Error(err)
		}
	})
}

// TestAlternatives checks that recording rules are queried first, and the raw metrics if they return no data.
func TestAlternatives(t *testing.T) {
	recorded := false
	s := serve(t, func(query string) string {
		if strings.Contains(query, "instance:node_") != recorded {
			return "[]"
		}
		return list(sample(`"instance":"node-1:9100"`, 0.5))
	})
	source := newSource(t, metricprovider.Config{Address: s.URL}, nil)
	for i, want := range []struct {
		recorded bool
		queries  int
	}{{false, 10}, {true, 6}} { // four series, or twice as many, the names and the age of the oldest sample
		recorded, s.asked = want.recorded, nil
		reading, err := source.Read(t.Context())
		if err != nil || len(reading.Nodes) != 1 || len(reading.Lost) != 0 || len(s.asked) != want.queries {
			t.Errorf("read %d: %v, lost %v, %d queries, want %d: %v", i, reading.Nodes, reading.Lost, len(s.asked), want.queries, err)
		}
	}
}

// TestYoungServer checks that the window is the time that the server has scraped for, which it is not asked for once that is the whole
// window.
func TestYoungServer(t *testing.T) {
	age, asked := 0.0, 0
	s := serve(t, func(query string) string {
		if strings.HasPrefix(query, "time() - ") {
			asked++
			return list(sample("", age))
		}
		return list(sample(`"node":"node-1"`, 0.5))
	})
	source := newSource(t, metricprovider.Config{Address: s.URL}, nil)
	for _, step := range []struct{ age, want float64 }{{10, 60}, {150, 150}, {850, 900}, {5, 900}} {
		age = step.age
		reading, err := source.Read(t.Context())
		if must.Succeed(t, err); reading.Window.Seconds() != step.want {
			t.Errorf("oldest sample %v s old: the window is %s, want %v s", step.age, reading.Window, step.want)
		}
	}
	if asked != 3 {
		t.Errorf("asked %d times, want 3", asked)
	}
}

// TestRuleOfSomeNodes has a recording rule of some of the nodes and of other machines: the raw metrics complete the others, also if a label
// that could name a node names none.
func TestRuleOfSomeNodes(t *testing.T) {
	inventory := func() ([]*v1.Node, error) {
		return []*v1.Node{
			{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "node-2"}},
		}, nil
	}
	for _, label := range []string{"", "instance"} {
		s := serve(t, func(query string) string {
			if strings.Contains(query, "instance:node_") {
				return list(sample(`"instance":"vm:9100"`, 0.9), sample(`"instance":"node-1:9100"`, 0.25))
			}
			return list(sample(`"instance":"node-1:9100"`, 0.5), sample(`"node":"prod-eu","instance":"node-2:9100"`, 0.75))
		})
		got, err := newSource(t, metricprovider.Config{Address: s.URL, NodeLabel: label}, inventory).Read(t.Context())
		if one, two := got.Nodes["node-1"].CPU.Mean, got.Nodes["node-2"].CPU.Mean; err != nil || len(got.Nodes) != 2 || one != 0.25 ||
			two != 0.75 {
			t.Errorf("nodeLabel %q: %v, %v", label, got.Nodes, err)
		}
	}
}

func TestQueries(t *testing.T) {
	s := newSource(t, metricprovider.Config{Address: "http://p", NodeLabel: "node", Selector: `cluster="prod"`}, nil)
	want := []string{
		`max by (node, cluster) (avg_over_time((instance:node_cpu_utilisation:rate5m{cluster="prod"} and instance:node_cpu_utilisation:rate5m{cluster="prod"} offset 5m)[15m:1m]) and instance:node_cpu_utilisation:rate5m{cluster="prod"})`,
		`(1 - sum by (node, cluster) (rate(node_cpu_seconds_total{mode=~"idle|iowait|steal",cluster="prod"}[15m])) / sum by (node, cluster) (rate(node_cpu_seconds_total{cluster="prod"}[15m]))) and (1 - sum by (node, cluster) (rate(node_cpu_seconds_total{mode=~"idle|iowait|steal",cluster="prod"}[5m])) / sum by (node, cluster) (rate(node_cpu_seconds_total{cluster="prod"}[5m])))`,
	}
	if diff := cmp.Diff(want, alternatives(&s.config, load.CPUMean)); diff != "" {
		t.Error(diff)
	}
	s = newSource(t, metricprovider.Config{Address: "http://p"}, nil)
	const memory = `1 - max by (instance, node, nodename, kubernetes_node, cluster) (node_memory_MemAvailable_bytes) / max by (instance, node, nodename, kubernetes_node, cluster) (node_memory_MemTotal_bytes)`
	want = []string{
		`max by (instance, node, nodename, kubernetes_node, cluster) (stddev_over_time(instance:node_memory_utilisation:ratio[15m]) and instance:node_memory_utilisation:ratio)`,
		`stddev_over_time((` + memory + `)[15m:1m]) and (` + memory + `)`,
	}
	if diff := cmp.Diff(want, alternatives(&s.config, load.MemoryStdDev)); diff != "" {
		t.Error(diff)
	}
}

func TestNewErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		config metricprovider.Config
		want   string
	}{
		"window": {
			metricprovider.Config{Window: metav1.Duration{Duration: time.Millisecond}},
			"window: invalid value 1ms: must be at least 1s",
		},
		"step": {
			metricprovider.Config{Window: metav1.Duration{Duration: time.Minute}, Step: metav1.Duration{Duration: time.Hour}},
			"step: invalid value 1h0m0s: must be at most the window, 1m0s",
		},
		"label": {metricprovider.Config{NodeLabel: "a b"}, `nodeLabel: invalid value "a b": must be a label name such as node`},
		"label, code": {
			metricprovider.Config{NodeLabel: `a) or up by (b`},
			`nodeLabel: invalid value "a) or up by (b": must be a label name such as node`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.Address = "http://p"
			if _, err := New(tc.config, nil); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// TestFaults checks the errors for faults of the server.
func TestFaults(t *testing.T) {
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, code) }
	}
	million := `{"status":"success","data":{"resultType":"vector","result":[` + strings.Repeat(
		sample(`"instance":"10.0.0.1:9100","cpu":"0"`, 0.5)+",", 1_000_000) + `]}}`
	large := `{"status":"success","data":{"resultType":"vector","result":` +
		list(sample(`"node":"`+strings.Repeat("x", maxBytes)+`"`, 0.5)) + `}}`
	// send sends a text from its first byte on: formatting a large one takes longer than the client waits on a busy machine.
	send := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		reason  load.Reason
		want    string
	}{
		"too many requests": {status(429, "slow down"), load.Throttled, "status 429 Too Many Requests: slow down"},
		"unauthorized": {
			status(401, "who are you"), load.Denied,
			"status 401 Unauthorized: who are you: credentials are in tokenFile, certFile or headersFile",
		},
		"not found": {status(404, "what?"), load.Invalid, "client_error: client error: 404: what?"},
		"a page":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, load.Invalid, "found no Prometheus at "},
		"a scalar": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`)
		}, load.Invalid, "found result of type scalar: must be a vector"},
		"a million series": {send(million), load.TooLarge, "response has more than 1000000 values"},
		"one large series": {send(large), load.TooLarge, "response is larger than 32 MiB"},
		"no data":          {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"success"}`) }, load.Invalid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			s := newSource(t, metricprovider.Config{Address: server.URL, Queries: customQueries}, nil)
			reading, err := s.Read(t.Context())
			if err == nil || load.ReasonOf(err) != tc.reason || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v (%s), want %s (%s)", err, load.ReasonOf(err), tc.want, tc.reason)
			}
			if reading.Nodes != nil {
				t.Error("a reading together with the error")
			}
		})
	}
	t.Run("hangs", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm() // the context of an unread request does not end
			<-r.Context().Done()
		}))
		defer server.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := newSource(t, metricprovider.Config{Address: server.URL}, nil).Read(ctx)
		if load.ReasonOf(err) != load.Timeout {
			t.Error(err)
		}
	})
	t.Run("POST is forbidden", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				http.Error(w, "no", http.StatusForbidden)
				return
			}
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":%s}}`, list(sample(`"node":"node-1"`, 0.5)))
		}))
		defer server.Close()
		reading, err := newSource(t, metricprovider.Config{Address: server.URL}, nil).Read(t.Context())
		if err != nil || len(reading.Nodes) != 1 {
			t.Error(err)
		}
	})
}

// FuzzRead checks that any response gives an error or a valid reading.
func FuzzRead(f *testing.F) {
	const envelope = `{"status":"success","data":{"resultType":"vector","result":%s}}`
	f.Add(fmt.Sprintf(envelope, list(sample(`"node":"a"`, 0.5))))
	f.Add(fmt.Sprintf(envelope, list(sample(`"instance":"10.0.0.1:9100"`, "NaN"), sample(`"nodename":"x\u001b"`, -1))))
	f.Add(fmt.Sprintf(envelope, `[{"metric":{},"value":[1e300,"1e400"]},{"histogram":[1,{}]}]`))
	f.Add(`{"status":"error","errorType":"bad_data","error":"x"}`)
	var response atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, response.Load())
	}))
	f.Cleanup(server.Close)
	source, err := New(metricprovider.Config{Address: server.URL, Queries: customQueries}, nil)
	must.Succeed(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		response.Store(text)
		reading, err := source.Read(t.Context())
		if err != nil {
			if err.Error() == "" || reading.Nodes != nil {
				t.Errorf("error %q with %d nodes", err, len(reading.Nodes))
			}
			return
		}
		for name, node := range reading.Nodes {
			if name == "" || !node.HasCPU && !node.HasMemory || !node.CPU.Valid() || !node.Memory.Valid() {
				t.Errorf("%q: %+v", name, node)
			}
		}
	})
}

// TestSelector checks that a selector that Prometheus cannot parse is refused before the first request.
func TestSelector(t *testing.T) {
	for selector, isValid := range map[string]bool{
		`cluster="prod"`: true, `cluster=~"a|\"b", zone!='c',`: true, "a=`b`,\"x.y\"!~\"\"": true,
		"cluster=a": false, `{cluster="a"}`: false, `a="b" c="d"`: false, `cluster="a`: false, "prod": false, ",": false,
	} {
		_, err := NewClient(metricprovider.Config{Address: "http://p", Selector: selector}, endpoint.Options{})
		if (err == nil) != isValid || err != nil && !strings.Contains(err.Error(), `must be matchers such as cluster="prod"`) {
			t.Errorf("%s: error %v", selector, err)
		}
	}
}

// TestNameOf verifies that a long query is named by its first metric in errors.
func TestNameOf(t *testing.T) {
	long := `(1 - sum by (instance, kubernetes_node) (rate(node_cpu_seconds_total{mode="idle"}[15m])) / sum(rate(node_cpu_seconds_total[15m])))`
	for query, want := range map[string]string{
		long: "node_cpu_seconds_total", "cpu_mean": "query cpu_mean", strings.Repeat("x", 200): "query " + strings.Repeat("x", 200),
	} {
		if got := nameOf(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}
