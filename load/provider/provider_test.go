package provider

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
)

type noMetrics struct{}

func (noMetrics) List(context.Context, metav1.ListOptions) (*metricsv1beta1.NodeMetricsList, error) {
	return nil, nil
}

var minute = metav1.Duration{Duration: time.Minute}

// at returns the configuration of a type of source with an address.
func at(name, address string) metricprovider.Config {
	return metricprovider.Config{Type: name, Address: address}
}

// nameOrError returns the name of a source, or the error in place of it.
func nameOrError(source fmt.Stringer, err error) string {
	if err != nil {
		return err.Error()
	}
	return source.String()
}

func TestNew(t *testing.T) {
	t.Setenv(SignalFxTokenVariable, "")
	access := Cluster{Nodes: func() ([]*v1.Node, error) { return nil, nil }, Metrics: noMetrics{}}
	tests := map[string]struct {
		config metricprovider.Config
		access Cluster
		want   string // the source's name, or the error
	}{
		"Prometheus":             {at(metricprovider.Prometheus, "http://p:9090/sub/"), Cluster{}, "Prometheus at http://p:9090/sub/"},
		"Prometheus, a password": {at(metricprovider.Prometheus, "http://me:secret@p:9090"), Cluster{}, "Prometheus at http://p:9090"},
		"metrics-server": {
			metricprovider.Config{Type: metricprovider.MetricsServer, Window: minute}, access, "the metrics API (metrics.k8s.io)",
		},
		"metrics-server, no access": {
			at(metricprovider.MetricsServer, ""), Cluster{}, "metrics-server: requires access to a cluster, for its metrics and nodes",
		},
		"SignalFx": {
			metricprovider.Config{Type: metricprovider.SignalFx, Address: "https://s", Token: "a", Step: minute},
			Cluster{},
			"SignalFx at https://s",
		},
		"SignalFx, no token": {
			at(metricprovider.SignalFx, "https://s"),
			Cluster{},
			"tokenFile: required for SignalFx, or set the environment variable SIGNALFX_TOKEN",
		},
		"a service": {
			at(metricprovider.Service, "http://load-watcher:2020"), Cluster{}, "the load watcher at http://load-watcher:2020/watcher",
		},
		"a file":          {at(metricprovider.File, "/var/load.json"), Cluster{}, "the file /var/load.json"},
		"a file, no path": {at(metricprovider.File, ""), Cluster{}, "address: required: the path of the file"},
		"no type": {
			metricprovider.Config{},
			Cluster{},
			`type: invalid value "": must be one of Prometheus, KubernetesMetricsServer, SignalFx, Service, File`,
		},
		"address of metrics-server": {
			at(metricprovider.MetricsServer, "http://p"), access,
			"address: not used by type KubernetesMetricsServer: only by Prometheus, SignalFx, Service, File",
		},
		"a token for a file": {
			metricprovider.Config{Type: metricprovider.File, Address: "/a", Token: "b"},
			Cluster{},
			"token: not used by type File: only by Prometheus, SignalFx, Service",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			source, err := New(tc.config, tc.access)
			if got := nameOrError(source, err); !strings.HasPrefix(got, tc.want) {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
	t.Run("every type has a source of its own", func(t *testing.T) {
		sources := map[string]bool{}
		for _, name := range metricprovider.Types {
			config := at(name, metricprovider.ExampleAddresses[name])
			switch name {
			case metricprovider.SignalFx:
				config.Token = "secret"
			case metricprovider.File:
				config.Address = "load.json"
			}
			source, err := New(config, access)
			if err != nil {
				t.Error(err)
			}
			sources[fmt.Sprintf("%T", source)] = true
		}
		if len(sources) != len(metricprovider.Types) {
			t.Errorf("sources %v for types %v", sources, metricprovider.Types)
		}
	})
	t.Run("SignalFx, token in the environment", func(t *testing.T) {
		t.Setenv(SignalFxTokenVariable, "secret")
		if _, err := New(tests["SignalFx, no token"].config, Cluster{}); err != nil {
			t.Error(err)
		}
	})
}

func TestNewPods(t *testing.T) {
	open := func(context.Context) (io.ReadCloser, error) { return nil, nil }
	const only = "must be one of Prometheus, KubernetesMetricsServer"
	for name, tc := range map[string]struct {
		config metricprovider.Config
		access Cluster
		want   string // the source's name, or the error
	}{
		"Prometheus":     {at(metricprovider.Prometheus, "http://p:9090"), Cluster{}, "Prometheus at http://p:9090, pods"},
		"metrics-server": {at(metricprovider.MetricsServer, ""), Cluster{PodMetrics: open}, "the metrics API (metrics.k8s.io), pods"},
		"metrics-server, no access": {
			at(metricprovider.MetricsServer, ""), Cluster{}, "metrics-server: requires access to a cluster, for its metrics",
		},
		"SignalFx":     {at(metricprovider.SignalFx, ""), Cluster{}, `type: invalid value "SignalFx": ` + only},
		"another type": {at("Datadog", ""), Cluster{}, `type: invalid value "Datadog": ` + only},
		"a window": {
			metricprovider.Config{Type: metricprovider.Prometheus, Window: minute}, Cluster{}, "window: not used for the usage of pods",
		},
		"a query for metrics-server": {
			metricprovider.Config{Type: metricprovider.MetricsServer, Queries: metricprovider.Queries{PodCPU: "a"}},
			Cluster{},
			"queries.podCPU: not used by type KubernetesMetricsServer: only by Prometheus",
		},
	} {
		t.Run(name, func(t *testing.T) {
			source, err := NewPods(tc.config, tc.access)
			if got := nameOrError(source, err); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
	_, err := New(metricprovider.Config{Type: metricprovider.Prometheus, Queries: metricprovider.Queries{PodCPU: "a"}}, Cluster{})
	if want := "queries.podCPU: not used for the load of nodes"; err == nil || err.Error() != want {
		t.Errorf("load of nodes: %v, want %s", err, want)
	}
}
