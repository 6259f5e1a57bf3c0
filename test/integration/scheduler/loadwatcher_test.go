package scheduler

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/nodeexporter"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/prometheus"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/remote"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// scrapeMachines starts a real Prometheus server that scrapes three machines, and returns its address.
func scrapeMachines(t *testing.T) string {
	t.Helper()
	exporter := nodeexporter.New(4 * time.Second)
	machines := httptest.NewServer(exporter)
	t.Cleanup(machines.Close)
	var targets []prometheus.Target
	for name, mean := range map[string]float64{"node-1": 0.25, "node-2": 0.5, "node-3": 0.75} {
		exporter.Set(name, nodeexporter.Load{CPU: nodeexporter.Utilization{Mean: mean}, Memory: nodeexporter.Utilization{Mean: 1 - mean}})
		targets = append(targets, prometheus.Target{
			Address: strings.TrimPrefix(machines.URL, "http://"), Path: "/" + name,
			Labels: map[string]string{"instance": "10.0.0." + name[5:] + ":9100"},
		})
	}
	server, err := prometheus.Start(t.Context(), targets, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
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
	source, err := remote.New(metricprovider.Config{Address: address})
	if err != nil {
		t.Fatal(err)
	}
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
		return err == nil && isExpected(means) && time.Since(reading.Time) < 10*time.Second, nil
	})
	if reading.Source != "Prometheus" || reading.Window != 4*time.Second {
		t.Errorf("load of %s over %s at %s", reading.Source, reading.Window, reading.Time)
	}

	t.Run("another client", func(t *testing.T) {
		client := program.Build(t, "load-watcher-client", "test/loadwatcher", ".")
		out, err := exec.CommandContext(t.Context(), client, address).Output()
		if err != nil {
			t.Fatal(err)
		}
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

// TestLoadWatcherWithTLSAndToken checks that load-watcher serves clients with the token over TLS, among
// them the metric provider Service.
func TestLoadWatcherWithTLSAndToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, key := selfSigned(t)
	certFile, keyFile, token := file("cert", cert), file("key", key), file("token", "secret")
	feed := file("load.json", fmt.Sprintf(`{"timestamp":%d,"window":{"duration":"15m"},"source":"Test",`+
		`"data":{"NodeMetricsMap":{"a":{"metrics":[{"type":"CPU","operator":"AVG","value":40}]}}}}`, time.Now().Unix()))
	port, watcher := testcluster.StartLoadWatcher(t, "--provider=File", "--address="+feed, "--tls-cert-file="+certFile,
		"--tls-private-key-file="+keyFile, "--auth-token-file="+token)
	address := fmt.Sprintf("https://127.0.0.1:%d", port)
	read := func(config metricprovider.Config) error {
		config.Address = address
		source, err := remote.New(config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = source.Read(t.Context())
		return err
	}
	eventually.True(t, "the load is not served", watcher, func(context.Context) (bool, error) {
		return read(metricprovider.Config{CAFile: certFile, TokenFile: token}) == nil, nil
	})
	if err := read(metricprovider.Config{CAFile: certFile}); load.ReasonOf(err) != load.Denied {
		t.Errorf("without the token: %v", err)
	}
	if err := read(metricprovider.Config{CAFile: certFile, Token: "guess"}); load.ReasonOf(err) != load.Denied {
		t.Errorf("with a wrong token: %v", err)
	}
	if err := read(metricprovider.Config{TokenFile: token}); load.ReasonOf(err) != load.Untrusted {
		t.Errorf("without the authority: %v", err)
	}
	if out, _ := testcluster.MustPlimsoll(t, "load", "top", "--load-source="+testcluster.WriteFile(t, fmt.Sprintf(
		"{type: Service, address: %q, caFile: %q, tokenFile: %q}", address, certFile, token))); !strings.Contains(out, "40.0") {
		t.Error(out)
	}
	_, stderr, exitCode := testcluster.RunPlimsoll(t, "load", "top", "--load-source="+testcluster.WriteFile(t, fmt.Sprintf(
		"{type: Service, address: %q, caFile: %q}", address, certFile)))
	if exitCode != 1 || !strings.Contains(stderr, "bearer token required") {
		t.Errorf("exit code %d\n%s", exitCode, stderr)
	}
	watcher.Stop(t)
}

// selfSigned returns a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.StartTLS()
	defer server.Close()
	pair := server.TLS.Certificates[0]
	raw, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

func TestLoadWatcherBadInput(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--nothing"}, "unknown flag: --nothing (see load-watcher --help)"},
		{
			[]string{"--provider=Datadog"},
			`--provider: invalid value "Datadog": must be one of Prometheus, KubernetesMetricsServer, SignalFx, Service, File`,
		},
		{[]string{"--provider=Prometheus"}, `--address "": must be a URL like http://prometheus.monitoring:9090`},
		{[]string{"--provider=Prometheus", "--address=p:9090"}, `--address "p:9090": must be a URL like http://prometheus.monitoring:9090`},
		{
			[]string{"--provider=Prometheus", "--address=http://p", "--node-label=a b"},
			`--node-label: invalid value "a b": must be a label name such as node`,
		},
		{[]string{"--provider=File", "--address=/a", "--step=1m"}, "--step: not used by type File: only by Prometheus, SignalFx"},
		{
			[]string{"--kubeconfig=/nonexistent"},
			"provider KubernetesMetricsServer: --kubeconfig: stat /nonexistent: no such file or directory",
		},
		{[]string{"--poll-interval=1ms"}, "--poll-interval: invalid value 1ms: must be at least 1s"},
		{[]string{"--max-age=1s"}, "--max-age: invalid value 1s: must be at least --poll-interval, 30s"},
		{[]string{"--tls-cert-file=a"}, "--tls-cert-file, --tls-private-key-file: must be set together"},
		{[]string{"--provider=File", "--address=/a", "--auth-token-file=/nonexistent"}, "open /nonexistent: no such file or directory"},
		{[]string{"--provider=File", "--address=/a", "--listen=127.0.0.1:99999"}, "--listen: listen tcp: address 99999: invalid port"},
		{[]string{"now"}, `unexpected argument "now": load-watcher has flags only, with one value each, without spaces`},
	} {
		cmd := exec.CommandContext(t.Context(), program.Path(t, "load-watcher"), tc.args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG=", "HOME=/nonexistent")
		_, stderr, exitCode := program.RunCommand(t, cmd)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		if exitCode != 2 || len(lines) != 1 || lines[0] != "load-watcher: "+tc.want {
			t.Errorf("%v: exit code %d\n%s\nwant\n%s", tc.args, exitCode, stderr, tc.want)
		}
	}
}
