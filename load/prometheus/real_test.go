//go:build foreign

package prometheus_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	prometheusserver "github.com/plimsoll-k8s/plimsoll/test/support/prometheus"
)

// settings are the arguments of prometheus.New.
type settings struct {
	metricprovider.Config
	nodes load.Inventory
}

const (
	period     = 10 * time.Second
	window     = 2 * period
	rateWindow = 2 * time.Second
)

// loadOf returns the load of the i-th of 50 machines.
func loadOf(i int) load.Node {
	return load.Node{
		CPU: load.Utilization{Mean: 0.2 + 0.01*float64(i), StdDev: 0.002 * float64(i)}, HasCPU: true,
		Memory: load.Utilization{Mean: 0.8 - 0.01*float64(i), StdDev: 0.1 - 0.002*float64(i)}, HasMemory: true,
	}
}

// simulated returns a load in the type of the exporter.
func simulated(n load.Node) prometheusserver.Load {
	return prometheusserver.Load{CPU: prometheusserver.Utilization(n.CPU), Memory: prometheusserver.Utilization(n.Memory)}
}

// late delays responses by up to a fifth of a second, as a busy machine does: the counters are then newer than the time of the
// scrape.
func late(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(rand.N(200 * time.Millisecond)):
			handler.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// TestRealPrometheus reads the load of 50 machines from a real Prometheus server, with the labels of common
// stacks, and compares it with the load of the exporters.
func TestRealPrometheus(t *testing.T) {
	exporter := prometheusserver.NewExporter(period)
	server := httptest.NewServer(late(exporter))
	defer server.Close()
	var targets []prometheusserver.Target
	var machines []*v1.Node
	for i := range 50 {
		name, address := fmt.Sprintf("node-%02d", i), fmt.Sprintf("10.0.0.%d", i)
		exporter.Set(name, simulated(loadOf(i)))
		labels := map[string]string{"instance": address + ":9100", "cluster": "prod"}
		switch i % 3 {
		case 1:
			labels["instance"] = name // kube-prometheus
		case 2:
			labels["node"] = name // Helm charts
		}
		targets = append(targets,
			prometheusserver.Target{Address: strings.TrimPrefix(server.URL, "http://"), Path: "/" + name, Labels: labels})
		machines = append(machines, &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Address: address}}},
		})
	}
	// One machine does not belong to the cluster.
	exporter.Set("stranger", simulated(loadOf(0)))
	targets = append(targets, prometheusserver.Target{
		Address: strings.TrimPrefix(server.URL, "http://"),
		Path:    "/stranger",
		Labels:  map[string]string{"instance": "192.0.2.1:9100", "cluster": "test"},
	})
	real, err := prometheusserver.Start(t.Context(), targets, 500*time.Millisecond)
	must.Succeed(t, err)
	defer real.Stop()
	source := func(change func(*settings)) *prometheus.Source {
		t.Helper()
		s := settings{
			Config: metricprovider.Config{
				Address:    real.Address,
				Window:     metav1.Duration{Duration: window},
				Step:       metav1.Duration{Duration: time.Second},
				RateWindow: metav1.Duration{Duration: rateWindow},
			},
			nodes: func() ([]*v1.Node, error) { return machines, nil },
		}
		change(&s)
		source, err := prometheus.New(s.Config, s.nodes)
		must.Succeed(t, err)
		return source
	}
	asShipped := source(func(*settings) {})
	// The window is full when the standard deviation has the expected value. For a constant load it is 0 only
	// if no scrape in the window was late, which takes longer on a busy machine.
	err = wait.PollUntilContextTimeout(t.Context(), time.Second, 10*5*time.Minute, true, func(ctx context.Context) (bool, error) {
		reading, err := asShipped.Read(ctx)
		return err == nil && len(reading.Lost) == 0 && wrong(reading, 50) == "", nil
	})
	asked := time.Now()
	reading, readErr := asShipped.Read(t.Context())
	if err != nil {
		t.Fatalf("%v: %s; %v", err, wrong(reading, 50), readErr)
	}
	if !isBetween(reading.Time, asked, time.Now()) || !(reading.Window > 0 && reading.Window <= window) || reading.Source != "Prometheus" {
		t.Errorf("read at %s, asked at %s, over %s from %s", reading.Time, asked, reading.Window, reading.Source)
	}
	for name, change := range map[string]func(*settings){
		"without knowing the nodes": func(c *settings) { c.nodes = nil },
		"one cluster of several":    func(c *settings) { c.nodes, c.Selector = nil, `cluster="prod"` },
		"own queries": func(c *settings) {
			c.NodeLabel = "nodename"
			const joined = `* on (instance, cluster) group_left(nodename) node_uname_info`
			// Divided by the time of all modes: a late response changes both by the same factor.
			busy := func(over string) string {
				const by = `sum by (instance, cluster) (rate(node_cpu_seconds_total`
				return "(1 - " + by + `{mode=~"idle|iowait"}[` + over + "])) / " + by + "[" + over + "])))"
			}
			c.Queries = metricprovider.Queries{
				CPUAvg:    busy("20s") + " " + joined,
				CPUStd:    "stddev_over_time(" + busy("2s") + "[20s:1s]) " + joined,
				MemoryAvg: `avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)[20s:1s]) ` + joined,
				MemoryStd: `stddev_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)[20s:1s]) ` +
					joined,
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := 51
			if name != "without knowing the nodes" {
				nodes = 50
			}
			source, problem := source(change), ""
			err := wait.PollUntilContextTimeout(t.Context(), time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
				reading, err := source.Read(ctx)
				if len(reading.Lost) > 0 {
					err = fmt.Errorf("lost %v", reading.Lost)
				}
				if err != nil {
					return false, err // problem is about the previous reading
				}
				problem = wrong(reading, nodes)
				return problem == "", nil
			})
			if err != nil {
				t.Error(err, problem)
			}
		})
	}
	t.Run("an invalid query loses its own series", func(t *testing.T) {
		source := source(func(c *settings) { c.Queries.CPUStd = "stddev_over_time(" })
		var reading load.Reading
		// A scrape that is late on a busy machine leaves a machine out of a reading.
		err := wait.PollUntilContextTimeout(t.Context(), time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
			var err error
			reading, err = source.Read(ctx)
			node := reading.Nodes["node-07"]
			return math.Abs(node.CPU.Mean-loadOf(7).CPU.Mean) < 0.02 && node.CPU.StdDev == 0 && node.Memory.StdDev > 0, err
		})
		if err != nil {
			t.Errorf("%v; node-07: %+v", err, reading.Nodes["node-07"])
		}
		if lost := reading.Lost[load.CPUStdDev]; lost == nil || len(reading.Lost) != 1 ||
			!strings.Contains(lost.Error(), "query stddev_over_time(: ") {
			t.Errorf("lost %v", reading.Lost)
		}
	})
	t.Run("a machine without an exporter", func(t *testing.T) {
		exporter.Remove("node-07")
		err := wait.PollUntilContextTimeout(
			t.Context(),
			500*time.Millisecond,
			5*time.Minute,
			true,
			func(ctx context.Context) (bool, error) {
				reading, err := asShipped.Read(ctx)
				_, known := reading.Nodes["node-07"]
				return !known && len(reading.Nodes) == 49, err
			},
		)
		if err != nil {
			t.Error("its past load is still returned")
		}
	})
}

// isBetween reports whether a time is between two times, to a second.
func isBetween(at, from, to time.Time) bool {
	return !at.Before(from.Add(-time.Second)) && !at.After(to.Add(time.Second))
}

// wrong returns the difference between a reading and the load of the machines, empty if there is none. Scrapes
// are half a second apart and a sample of CPU is the average over two seconds, a fifth of the period, which
// reduces the standard deviation by 6%: sin(pi/5) / (pi/5) = 0.935.
func wrong(reading load.Reading, nodes int) string {
	if len(reading.Nodes) != nodes {
		return fmt.Sprintf("%d nodes, want %d", len(reading.Nodes), nodes)
	}
	for i := range 50 {
		name, want := fmt.Sprintf("node-%02d", i), loadOf(i)
		got := reading.Nodes[name]
		for _, figure := range []struct {
			what      string
			got, want float64
			allowed   float64
		}{
			{"CPU", got.CPU.Mean, want.CPU.Mean, 0.02},
			{"CPU deviation", got.CPU.StdDev, 0.935 * want.CPU.StdDev, 0.01},
			{"memory", got.Memory.Mean, want.Memory.Mean, 0.02},
			{"memory deviation", got.Memory.StdDev, want.Memory.StdDev, 0.01},
		} {
			if math.Abs(figure.got-figure.want) > figure.allowed {
				return fmt.Sprintf("%s of %s: %.4f, want %.4f", figure.what, name, figure.got, figure.want)
			}
		}
	}
	return ""
}
