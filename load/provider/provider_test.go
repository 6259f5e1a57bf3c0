package provider

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/load/cluster"
	"github.com/plimsoll-k8s/plimsoll/load/endpoint"
	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
)

type noMetrics struct{}

func (noMetrics) List(context.Context, metav1.ListOptions) (*metricsv1beta1.NodeMetricsList, error) {
	return nil, nil
}

func TestNew(t *testing.T) {
	t.Setenv(SignalFxTokenVariable, "")
	at := func(address string) endpoint.Config { return endpoint.Config{Address: address} }
	access := Cluster{Nodes: func() ([]cluster.Machine, error) { return nil, nil }, Metrics: noMetrics{}}
	tests := map[string]struct {
		config Config
		access Cluster
		want   string // the source's name, or the error
	}{
		"Prometheus":               {Config{Type: Prometheus, Endpoint: at("http://p:9090/sub/")}, Cluster{}, "Prometheus at http://p:9090/sub/"},
		"Prometheus, a password":   {Config{Type: Prometheus, Endpoint: at("http://me:secret@p:9090")}, Cluster{}, "Prometheus at http://p:9090"},
		"metrics-server":           {Config{Type: MetricsServer, Window: time.Minute}, access, "the metrics API (metrics.k8s.io)"},
		"metrics-server, nowhere":  {Config{Type: MetricsServer}, Cluster{}, "metrics-server: wants access to a cluster, for its metrics and its nodes"},
		"SignalFx":                 {Config{Type: SignalFx, Endpoint: endpoint.Config{Address: "https://api.us1.signalfx.com", Token: "a"}, Step: time.Minute}, Cluster{}, "SignalFx at https://api.us1.signalfx.com"},
		"SignalFx, no token":       {Config{Type: SignalFx, Endpoint: at("https://api.us1.signalfx.com")}, Cluster{}, "token: SignalFx wants one, by tokenFile or by the environment variable SIGNALFX_TOKEN"},
		"a service":                {Config{Type: Service, Endpoint: at("http://load-watcher:2020")}, Cluster{}, "the load watcher at http://load-watcher:2020/watcher"},
		"a file":                   {Config{Type: File, Endpoint: at("/var/load.json")}, Cluster{}, "the file /var/load.json"},
		"a file, no path":          {Config{Type: File}, Cluster{}, "address: want the path of a file"},
		"no type":                  {Config{}, Cluster{}, `type: found "", want one of Prometheus, KubernetesMetricsServer, SignalFx, Service, File`},
		"another type":             {Config{Type: "Datadog"}, Cluster{}, `type: found "Datadog", want one of`},
		"an address of none":       {Config{Type: MetricsServer, Endpoint: at("http://p")}, access, "address: has no meaning for a provider of type KubernetesMetricsServer"},
		"a token for a file":       {Config{Type: File, Endpoint: endpoint.Config{Address: "/a", Token: "b"}}, Cluster{}, "token, tokenFile, caFile, certFile, keyFile, insecureSkipVerify: has no meaning for a provider of type File"},
		"a window of a service":    {Config{Type: Service, Endpoint: at("http://p"), Window: time.Minute}, Cluster{}, "window: has no meaning for a provider of type Service"},
		"a step of metrics-server": {Config{Type: MetricsServer, Step: time.Minute}, access, "step: has no meaning for a provider of type KubernetesMetricsServer"},
		"a label for SignalFx":     {Config{Type: SignalFx, Endpoint: at("https://s"), NodeLabel: "a"}, Cluster{}, "nodeLabel: has no meaning for a provider of type SignalFx"},
		"queries for a service":    {Config{Type: Service, Endpoint: at("http://p"), Queries: prometheus.Queries{CPUMean: "a"}}, Cluster{}, "queries: has no meaning for a provider of type Service"},
		"a filter for Prometheus":  {Config{Type: Prometheus, Endpoint: at("http://p"), Filter: "a"}, Cluster{}, "cpuMetric, memoryMetric, hostDimension, filter: has no meaning for a provider of type Prometheus"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			source, err := New(tc.config, tc.access)
			var got string
			if err != nil {
				got = err.Error()
			} else {
				got = source.String()
			}
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
	t.Run("SignalFx, a token of the environment", func(t *testing.T) {
		t.Setenv(SignalFxTokenVariable, "secret")
		if _, err := New(tests["SignalFx, no token"].config, Cluster{}); err != nil {
			t.Error(err)
		}
	})
}
