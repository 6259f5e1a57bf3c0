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

// Validate returns an error for an unknown type, and for a field that the type does not use to read the load of nodes.
func Validate(config metricprovider.Config) error {
	return validate(config, metricprovider.Types, func(f metricprovider.Field) []string { return f.Types }, "the load of nodes")
}

// validate returns an error for a type other than the types, and for a field that is set and that the type does not use for a purpose.
// typesOf returns the types that use a field.
func validate(config metricprovider.Config, types []string, typesOf func(metricprovider.Field) []string, purpose string) error {
	if !slices.Contains(types, config.Type) {
		return fmt.Errorf("type: invalid value %q: must be one of %s", config.Type, strings.Join(types, ", "))
	}
	field, found := config.UnusedField(typesOf)
	switch users := typesOf(field); {
	case !found:
		return nil
	case len(users) == 0:
		return fmt.Errorf("%s: not used for %s", field.Name, purpose)
	default:
		return fmt.Errorf("%s: not used by type %s: only by %s", field.Name, config.Type, strings.Join(users, ", "))
	}
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
	typesOf := func(f metricprovider.Field) []string { return f.PodTypes }
	if err := validate(config, metricprovider.PodTypes, typesOf, "the usage of pods"); err != nil {
		return nil, err
	}
	if config.Type == metricprovider.Prometheus {
		return prometheus.NewPods(config)
	}
	return metricsserver.NewPods(access.PodMetrics)
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
