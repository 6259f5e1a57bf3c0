package shared

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// schedulerHandle is a handle with access to a cluster and nothing else.
type schedulerHandle struct {
	fwk.Handle
	config *rest.Config
}

func (h schedulerHandle) KubeConfig() *rest.Config                               { return h.config }
func (h schedulerHandle) SharedInformerFactory() informers.SharedInformerFactory { return nil }

// TestPodStore reads the usage of pods from an API server, and from a Prometheus server that has no data.
func TestPodStore(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/metrics.k8s.io/v1beta1/pods" {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprintf(w, `{"kind":"PodMetricsList","items":[{"metadata":{"namespace":"default","name":"web"},"timestamp":%q,
			"window":"15s","containers":[{"name":"c","usage":{"cpu":"250m","memory":"1Gi"}}]}]}`, time.Now().UTC().Format(time.RFC3339))
	}))
	defer server.Close()
	handle := schedulerHandle{config: &rest.Config{Host: server.URL}}
	state := New()
	config := LoadConfig{
		Provider: metricprovider.Config{Type: metricprovider.MetricsServer}, PollInterval: time.Hour, MaxAge: time.Hour,
	}
	store, err := state.podStore(t.Context(), config, handle)
	must.Succeed(t, err)
	eventually.True(t, "no reading", nil, func(context.Context) (bool, error) { return store.Fresh() != nil, nil })
	if got, want := store.Fresh().Pods[0], (load.PodUsage{Namespace: "default", Name: "web", CPU: 250, Memory: 1 << 30}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if again, err := state.podStore(t.Context(), config, handle); again != store || err != nil {
		t.Errorf("another store for the same configuration, or error %v", err)
	}
	config.Provider = metricprovider.Config{Type: metricprovider.Prometheus, Address: server.URL}
	if other, err := state.podStore(t.Context(), config, handle); other == store || other == nil || err != nil {
		t.Errorf("the same store for another configuration, or error %v", err)
	}
}

func TestPodStoreErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		config metricprovider.Config
		want   string
	}{
		"SignalFx": {
			metricprovider.Config{Type: metricprovider.SignalFx},
			"podUsage.type: invalid value \"SignalFx\": must be one of Prometheus, KubernetesMetricsServer",
		},
		"no access": {
			metricprovider.Config{Type: metricprovider.MetricsServer},
			"podUsage.metrics-server: requires access to a cluster, for its metrics",
		},
	} {
		_, err := New().podStore(t.Context(), LoadConfig{Provider: tc.config, PollInterval: time.Hour}, schedulerHandle{})
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// TestPodStoreOfSimulation checks that simulated stores are created only for plugins whose arguments configure a source.
func TestPodStoreOfSimulation(t *testing.T) {
	var created []time.Duration
	newStore := func(maxAge time.Duration) (*load.Store, error) { return load.NewStore(maxAge, nil), nil }
	state := NewWithLoad(newStore, func(maxAge time.Duration) (*load.PodStore, error) {
		created = append(created, maxAge)
		return load.NewPodStore(maxAge, nil), nil
	})
	configured := LoadConfig{Provider: metricprovider.Config{Type: metricprovider.MetricsServer}, MaxAge: time.Minute}
	for _, tc := range []struct {
		state  *State
		config LoadConfig
		want   bool
	}{
		{state, LoadConfig{MaxAge: time.Hour}, false},
		{state, configured, true},
		{NewWithLoad(newStore, nil), configured, false},
	} {
		store, err := tc.state.podStore(t.Context(), tc.config, nil)
		if err != nil || (store != nil) != tc.want {
			t.Errorf("%+v: store: %t, error %v; want a store: %t", tc.config, store != nil, err, tc.want)
		}
	}
	if len(created) != 1 || created[0] != time.Minute {
		t.Errorf("created stores with ages %v, want one of 1m", created)
	}
}
