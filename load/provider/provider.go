// Package provider constructs load sources from their configuration.
package provider

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/metricsserver"
	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
	"github.com/plimsoll-k8s/plimsoll/load/signalfx"
)

// SignalFxTokenVariable is the environment variable with the token for SignalFx. It is used if the
// configuration has no token.
const SignalFxTokenVariable = "SIGNALFX_TOKEN"

// Cluster is access to a cluster, for the types that need it. Each field may be nil.
type Cluster struct {
	// Nodes are the nodes of the cluster.
	Nodes load.Inventory
	// Metrics is the client of the metrics API.
	Metrics metricsserver.Lister
	// PodMetrics opens the list of the metrics of all pods; see podmetrics.Open.
	PodMetrics metricsserver.PodOpener
}

// Validate returns an error for an unknown type and for a field that the type does not use.
func Validate(config metricprovider.Config) error {
	if !slices.Contains(metricprovider.Types, config.Type) {
		return fmt.Errorf("type: invalid value %q: must be one of %s", config.Type, strings.Join(metricprovider.Types, ", "))
	}
	if field, found := config.UnusedField(func(f metricprovider.Field) []string { return f.Types }); found {
		return unusedError(field, config.Type, field.Types, "the load of nodes")
	}
	return nil
}

// New returns the source of a configuration, or an error that names the field.
func New(config metricprovider.Config, access Cluster) (load.Source, error) {
	if err := Validate(config); err != nil {
		return nil, err
	}
	switch config.Type {
	case metricprovider.Prometheus:
		return prometheus.New(config, access.Nodes)
	case metricprovider.MetricsServer:
		return metricsserver.New(metricsserver.Config{Metrics: access.Metrics, Nodes: access.Nodes, Window: config.Window.Duration})
	case metricprovider.SignalFx:
		return newSignalFx(config, access)
	case metricprovider.Service:
		return NewWatcher(config)
	default:
		return newFile(config)
	}
}

// NewPods returns the source of the usage of pods, or an error that names the field.
func NewPods(config metricprovider.Config, access Cluster) (load.PodSource, error) {
	switch {
	case slices.Contains(metricprovider.PodTypes, config.Type):
	case slices.Contains(metricprovider.Types, config.Type):
		return nil, fmt.Errorf("type: %s does not provide the usage of pods: must be one of %s",
			config.Type, strings.Join(metricprovider.PodTypes, ", "))
	default:
		return nil, fmt.Errorf("type: invalid value %q: must be one of %s", config.Type, strings.Join(metricprovider.PodTypes, ", "))
	}
	if field, found := config.UnusedField(func(f metricprovider.Field) []string { return f.PodTypes }); found {
		return nil, unusedError(field, config.Type, field.PodTypes, "the usage of pods")
	}
	if config.Type == metricprovider.Prometheus {
		return prometheus.NewPods(config)
	}
	return metricsserver.NewPods(access.PodMetrics)
}

// unusedError returns the error for a field that is set and that the type does not use. types are the types that use it.
func unusedError(field metricprovider.Field, providerType string, types []string, purpose string) error {
	if len(types) == 0 {
		return fmt.Errorf("%s: not used for %s", field.Name, purpose)
	}
	return fmt.Errorf("%s: not used by type %s: only by %s", field.Name, providerType, strings.Join(types, ", "))
}

func newSignalFx(config metricprovider.Config, access Cluster) (load.Source, error) {
	if config.Token == "" && config.TokenFile == "" {
		config.Token = strings.TrimSpace(os.Getenv(SignalFxTokenVariable))
		if config.Token == "" {
			return nil, fmt.Errorf("tokenFile: required for SignalFx, or set the environment variable %s", SignalFxTokenVariable)
		}
	}
	return signalfx.New(config, access.Nodes)
}

func newFile(config metricprovider.Config) (load.Source, error) {
	if config.Address == "" {
		return nil, errors.New("address: required: the path of the file")
	}
	if strings.Contains(config.Address, "://") {
		return nil, fmt.Errorf("address: invalid value %q: must be the path of a file, not a URL", config.Address)
	}
	path, err := filepath.Abs(config.Address)
	return NewFile(path), err
}
