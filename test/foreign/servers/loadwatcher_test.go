//go:build foreign

package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/prometheus"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// scrapeMachines starts a real Prometheus server that scrapes three machines, and returns its address.
func scrapeMachines(t *testing.T) string {
	t.Helper()
	exporter := prometheus.NewExporter(4 * time.Second)
	machines := httptest.NewServer(exporter)
	t.Cleanup(machines.Close)
	var targets []prometheus.Target
	for name, mean := range map[string]float64{"node-1": 0.25, "node-2": 0.5, "node-3": 0.75} {
		exporter.Set(name, prometheus.Load{CPU: prometheus.Utilization{Mean: mean}, Memory: prometheus.Utilization{Mean: 1 - mean}})
		targets = append(targets, prometheus.Target{
			Address: strings.TrimPrefix(machines.URL, "http://"), Path: "/" + name,
			Labels: map[string]string{"instance": "10.0.0." + name[5:] + ":9100"},
		})
	}
	server, err := prometheus.Start(t.Context(), targets, 200*time.Millisecond)
	must.Succeed(t, err)
	t.Cleanup(server.Stop)
	return server.Address
}

// TestLoadWatcher reads the load of a real Prometheus server through load-watcher, with the client of
// Plimsoll, another client, and the command line.
func TestLoadWatcher(t *testing.T) {
	t.Parallel()
	prometheus := scrapeMachines(t)
	flags := []string{"--provider=Prometheus", "--address=" + prometheus, "--window=4s", "--step=1s", "--rate-window=1s"}
	port, watcher := testcluster.StartLoadWatcher(t, append(flags, "--poll-interval=1s")...)
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	source, err := provider.NewWatcher(metricprovider.Config{Address: address})
	must.Succeed(t, err)
	var reading load.Reading
	isExpected := func(means map[string]float64) bool {
		ok := len(means) == 3
		for name, want := range map[string]float64{"node-1": 0.25, "node-2": 0.5, "node-3": 0.75} {
			ok = ok && math.Abs(means[name]-want) < 0.02
		}
		return ok
	}
	eventually.True(t, "the client does not read the load of the machines", watcher, func(ctx context.Context) (bool, error) {
		var err error
		reading, err = source.Read(ctx)
		means := map[string]float64{}
		for name, node := range reading.Nodes {
			means[name] = node.CPU.Mean
		}
		return err == nil && isExpected(means) && time.Since(reading.Time) < 10*time.Second && reading.Window == 4*time.Second, nil
	})
	if reading.Source != "Prometheus" || reading.Window != 4*time.Second {
		t.Errorf("load of %s over %s at %s", reading.Source, reading.Window, reading.Time)
	}

	t.Run("another client", func(t *testing.T) {
		client := program.Build(t, "load-watcher-client", "test/loadwatcher", ".")
		out, err := exec.CommandContext(t.Context(), client, address).Output()
		must.Succeed(t, err)
		var decoded struct {
			Window struct{ Duration string }
			Source string
			Data   struct {
				NodeMetricsMap map[string]struct {
					Metrics []struct {
						Type, Operator string
						Value          float64
					}
				}
			}
		}
		if err := json.Unmarshal(out, &decoded); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		means := map[string]float64{}
		for name, node := range decoded.Data.NodeMetricsMap {
			if len(node.Metrics) != 4 {
				t.Errorf("%s has %d metrics, want 4", name, len(node.Metrics))
			}
			for _, metric := range node.Metrics {
				if metric.Type == "CPU" && metric.Operator == "AVG" {
					means[name] = metric.Value / 100
				}
			}
		}
		if !isExpected(means) || decoded.Source != "Prometheus" || decoded.Window.Duration != "4s" {
			t.Errorf("decoded %s", out)
		}
	})
	t.Run("command line", func(t *testing.T) {
		for name, args := range map[string][]string{
			"from Prometheus":  {"--load-source=" + testcluster.WriteFile(t, "{type: Prometheus, address: '"+prometheus+"', window: 4s, step: 1s, rateWindow: 1s}")},
			"from the service": {"--provider=Service", "--address=" + address},
			"as a scheduler": {"--config=" +
				testcluster.WriteFile(t, "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"+
					"- pluginConfig: [{name: LowRiskOverCommitment, args: {metricProvider: {type: Prometheus, "+
					"address: '"+prometheus+"', window: 4s, step: 1s, rateWindow: 1s}}}]\n")},
		} {
			table, stderr, exitCode := testcluster.RunPlimsoll(t, append([]string{"load", "top"}, args...)...)
			if exitCode != 0 || !strings.Contains(table+stderr, "3 nodes; means and deviations over 4s") ||
				strings.Index(table, "node-3") > strings.Index(table, "node-1") {
				t.Errorf("%s: exit code %d\n%s%s", name, exitCode, table, stderr)
			}
			// The machines report late on a busy machine, so that single readings can deviate.
			eventually.True(t, name+": not the load of the machines", watcher, func(context.Context) (bool, error) {
				raw, _ := testcluster.MustPlimsoll(t, append([]string{"load", "top", "-o", "json"}, args...)...)
				var got struct {
					Source string
					Nodes  []struct {
						Name string
						CPU  struct{ Mean float64 }
					}
				}
				if err := json.Unmarshal([]byte(raw), &got); err != nil {
					return false, fmt.Errorf("%w in %s", err, raw)
				}
				means := map[string]float64{}
				for _, node := range got.Nodes {
					means[node.Name] = node.CPU.Mean
				}
				return isExpected(means) && got.Source == "Prometheus", nil
			})
		}
	})
	served := testcluster.Scrape(t, fmt.Sprintf("127.0.0.1:%d", port), "plimsoll_", "# ")
	testcluster.ExpectMetrics(t, served, "load", "load-watcher")
	if strings.Contains(served, `plimsoll_load_watcher_requests_total{code="200",handler="watcher"} 0`) {
		t.Errorf("no request is counted:\n%s", served)
	}
	watcher.Stop(t)
	if !strings.Contains(watcher.String(), `msg="read load" nodes=3`) || !strings.Contains(watcher.String(), "shutting down") {
		t.Errorf("log:\n%s", watcher)
	}
}
