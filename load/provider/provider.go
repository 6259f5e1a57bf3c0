// Package provider makes sources of load from what a configuration says, for
// the scheduler, the load-watcher service and the command line alike.
package provider

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/cluster"
	"github.com/plimsoll-k8s/plimsoll/load/endpoint"
	"github.com/plimsoll-k8s/plimsoll/load/file"
	"github.com/plimsoll-k8s/plimsoll/load/metricsserver"
	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
	"github.com/plimsoll-k8s/plimsoll/load/remote"
	"github.com/plimsoll-k8s/plimsoll/load/signalfx"
)

// The types of provider.
const (
	Prometheus    = prometheus.Type
	MetricsServer = metricsserver.Type
	SignalFx      = "SignalFx"
	// Service is a load-watcher service.
	Service = "Service"
	// File is a file in the wire format of load-watcher services.
	File = "File"
)

// Types are the types of provider that there are.
var Types = []string{Prometheus, MetricsServer, SignalFx, Service, File}

// SignalFxTokenVariable is the environment variable with the token for
// SignalFx, where the configuration has none.
const SignalFxTokenVariable = "SIGNALFX_TOKEN"

// Config says where load is read from. What a type has no use for must be left
// empty.
type Config struct {
	// Type of the provider, one of Types.
	Type string
	// Endpoint is the server; of a File, its address is the path.
	Endpoint endpoint.Config
	// Window is what means and deviations are over, where the provider lets one
	// choose; 15m if 0.
	Window time.Duration
	// Step and RateWindow: see prometheus.Config. SignalFx takes Step as its
	// resolution.
	Step, RateWindow time.Duration
	// NodeLabel, Selector and Queries: see prometheus.Config.
	NodeLabel, Selector string
	Queries             prometheus.Queries
	// CPUMetric, MemoryMetric, HostDimension and Filter: see signalfx.Config.
	CPUMetric, MemoryMetric, HostDimension, Filter string
}

// Cluster is access to a cluster, for providers that have a use for it. Either
// may be nil.
type Cluster struct {
	Nodes   cluster.Inventory
	Metrics metricsserver.Lister
}

// New returns the source of a configuration, or an error that names the field.
func New(config Config, access Cluster) (load.Source, error) {
	if !slices.Contains(Types, config.Type) {
		return nil, fmt.Errorf("type: found %q, want one of %s", config.Type, strings.Join(Types, ", "))
	}
	if err := config.checkUnused(); err != nil {
		return nil, err
	}
	switch config.Type {
	case Prometheus:
		return prometheus.New(prometheus.Config{
			Endpoint: config.Endpoint, Queries: config.Queries, NodeLabel: model.LabelName(config.NodeLabel), Selector: config.Selector,
			Window: config.Window, Step: config.Step, RateWindow: config.RateWindow, Nodes: access.Nodes,
		})
	case MetricsServer:
		return metricsserver.New(metricsserver.Config{Metrics: access.Metrics, Nodes: access.Nodes, Window: config.Window})
	case SignalFx:
		return newSignalFx(config, access)
	case Service:
		return remote.New(config.Endpoint)
	default:
		if config.Endpoint.Address == "" {
			return nil, errors.New("address: want the path of a file")
		}
		path, err := filepath.Abs(config.Endpoint.Address)
		return file.New(path), err
	}
}

func newSignalFx(config Config, access Cluster) (load.Source, error) {
	if config.Endpoint.Token == "" && config.Endpoint.TokenFile == "" {
		config.Endpoint.Token = strings.TrimSpace(os.Getenv(SignalFxTokenVariable))
		if config.Endpoint.Token == "" {
			return nil, fmt.Errorf("token: SignalFx wants one, by tokenFile or by the environment variable %s", SignalFxTokenVariable)
		}
	}
	return signalfx.New(signalfx.Config{
		Endpoint: config.Endpoint, CPUMetric: config.CPUMetric, MemoryMetric: config.MemoryMetric,
		HostDimension: config.HostDimension, Filter: config.Filter, Window: config.Window, Resolution: config.Step,
		Nodes: access.Nodes,
	})
}

// checkUnused refuses what the type of provider would silently ignore.
func (c *Config) checkUnused() error {
	isServer := c.Type == Prometheus || c.Type == SignalFx || c.Type == Service
	credentials := c.Endpoint
	credentials.Address = ""
	for _, field := range []struct {
		name     string
		set, may bool
	}{
		{"address", c.Endpoint.Address != "", c.Type != MetricsServer},
		{"token, tokenFile, caFile, certFile, keyFile, insecureSkipVerify", credentials != endpoint.Config{}, isServer},
		{"window", c.Window != 0, c.Type != Service && c.Type != File},
		{"step", c.Step != 0, c.Type == Prometheus || c.Type == SignalFx},
		{"rateWindow", c.RateWindow != 0, c.Type == Prometheus},
		{"nodeLabel", c.NodeLabel != "", c.Type == Prometheus},
		{"selector", c.Selector != "", c.Type == Prometheus},
		{"queries", c.Queries != prometheus.Queries{}, c.Type == Prometheus},
		{"cpuMetric, memoryMetric, hostDimension, filter", c.CPUMetric+c.MemoryMetric+c.HostDimension+c.Filter != "", c.Type == SignalFx},
	} {
		if field.set && !field.may {
			return fmt.Errorf("%s: has no meaning for a provider of type %s", field.name, c.Type)
		}
	}
	return nil
}
