// Package prometheus reads load from a Prometheus server, or from another server with its query API, such
// as Thanos, Mimir and VictoriaMetrics.
//
// A read sends one query per series for all nodes, evaluated at the time of the server. A failed query
// loses its own series only.
package prometheus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/cluster"
	"github.com/plimsoll-k8s/plimsoll/load/endpoint"
)

// The defaults of the configuration.
const (
	defaultWindow     = 15 * time.Minute
	defaultStep       = time.Minute
	defaultRateWindow = 5 * time.Minute
)

// maxBytes is the size of the largest response to one query; a response for 5,000 nodes has about 1 MiB.
const maxBytes = 32 << 20

// maxValues is the largest number of JSON values in a response; a response for 50,000 nodes with ten labels each
// has 750,000.
const maxValues = 1_000_000

// maxFraction is the largest value that is accepted as a fraction near 1. Larger values are probably
// percentages or numbers of cores.
const maxFraction = 1.5

// Source reads a Prometheus server.
type Source struct {
	*Client
	config metricprovider.Config
	nodes  cluster.Inventory
	// preferred is the index of the query that returned data last, for each series.
	preferred [4]atomic.Int32
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// New returns the source of a configuration, or an error that names the field. nodes are the nodes of
// the cluster, which series with addresses are matched with; without them, the metric
// node_uname_info of node-exporter maps addresses to nodes.
func New(config metricprovider.Config, nodes cluster.Inventory) (*Source, error) {
	window, step, rateWindow := &config.Window.Duration, &config.Step.Duration, &config.RateWindow.Duration
	*window = cmp.Or(*window, defaultWindow)
	*step = cmp.Or(*step, min(defaultStep, *window))
	*rateWindow = cmp.Or(*rateWindow, min(defaultRateWindow, *window))
	switch {
	case *window < time.Second:
		return nil, fmt.Errorf("window: invalid value %s: must be at least 1s", *window)
	case *step < time.Second:
		return nil, fmt.Errorf("step: invalid value %s: must be at least 1s", *step)
	case *rateWindow < time.Second:
		return nil, fmt.Errorf("rateWindow: invalid value %s: must be at least 1s", *rateWindow)
	case *step > *window:
		return nil, fmt.Errorf("step: invalid value %s: must be at most the window, %s", *step, *window)
	case config.NodeLabel != "" && !labelName.MatchString(config.NodeLabel):
		return nil, fmt.Errorf("nodeLabel: invalid value %q: must be a label name such as node", config.NodeLabel)
	}
	client, err := NewClient(config, endpoint.Options{MaxBytes: maxBytes, MaxValues: maxValues})
	if err != nil {
		return nil, err
	}
	return &Source{Client: client, config: config, nodes: nodes}, nil
}

// Queries returns the queries for a series, the preferred one first. The first that returns data is
// used.
func (s *Source) Queries(series load.Series) []string { return alternatives(&s.config, series) }

// Read queries all series.
func (s *Source) Read(ctx context.Context) (load.Reading, error) {
	names, err := s.nodeNames(ctx)
	if err != nil {
		return load.Reading{}, err
	}
	var vectors [4]model.Vector
	var errs [4]error
	var group sync.WaitGroup
	for i, series := range load.AllSeries {
		group.Go(func() { vectors[i], errs[i] = s.querySeries(ctx, i, series) })
	}
	group.Wait()
	reading := load.Reading{
		Source: metricprovider.Prometheus, Window: s.config.Window.Duration,
		Nodes: map[string]load.Node{}, Lost: map[load.Series]error{},
	}
	for i, series := range load.AllSeries {
		if errs[i] == nil {
			errs[i] = s.add(&reading, series, vectors[i], names)
		}
		if errs[i] != nil {
			reading.Lost[series] = errs[i]
		}
	}
	if errs[0] != nil && errs[2] != nil {
		return load.Reading{}, load.JoinErrors(errs[0], errs[2])
	}
	for name, node := range reading.Nodes {
		if !node.HasCPU && !node.HasMemory {
			delete(reading.Nodes, name) // it has standard deviations only
		}
	}
	return reading, nil
}

// querySeries returns the result of the first query for a series that returns data.
func (s *Source) querySeries(ctx context.Context, i int, series load.Series) (model.Vector, error) {
	alternatives := alternatives(&s.config, series)
	first := int(s.preferred[i].Load())
	for n := range alternatives {
		n = (first + n) % len(alternatives)
		vector, err := s.vector(ctx, alternatives[n], time.Time{})
		if err != nil {
			return nil, err
		}
		if len(vector) > 0 {
			s.preferred[i].Store(int32(n)) //nolint:gosec // one of two
			return vector, nil
		}
	}
	return nil, &load.Error{Reason: load.Empty, Err: fmt.Errorf(
		"query %s: no data: check that node-exporter is scraped and that the labels match", alternatives[len(alternatives)-1])}
}

// vector returns the result of a query at a time, the current time of the server if it is zero.
func (c *Client) vector(ctx context.Context, query string, at time.Time) (model.Vector, error) {
	vector, _, err := c.Query(ctx, query, at)
	if apiErr, ok := errors.AsType[*promv1.Error](err); ok && (apiErr.Type == promv1.ErrBadData || apiErr.Type == promv1.ErrExec) {
		return nil, fmt.Errorf("query %s: %s", query, apiErr.Msg)
	}
	return vector, err
}

// add adds the samples of a series to a reading.
func (s *Source) add(reading *load.Reading, series load.Series, vector model.Vector, names nodeNames) error {
	accepted := 0
	var invalid *model.Sample // of a known node
	for _, sample := range vector {
		name, known := s.node(sample.Metric, names)
		value := float64(sample.Value)
		if value < 0 && value > -0.01 {
			value = 0 // counters are not read at exactly the same time
		}
		if !known || !(value >= 0 && value <= maxFraction) {
			reading.Rejected++
			if known {
				invalid = sample
			}
			continue
		}
		accepted++
		if at := sample.Timestamp.Time(); reading.Time.IsZero() || at.Before(reading.Time) {
			reading.Time = at
		}
		node := reading.Nodes[name]
		set(&node, series, min(value, 1))
		reading.Nodes[name] = node
	}
	switch {
	case accepted > 0:
		return nil
	case invalid != nil:
		return fmt.Errorf("all values are outside [0, 1], such as %v: must be fractions of the node's capacity", invalid.Value)
	}
	return &load.Error{Reason: load.Empty, Err: fmt.Errorf(
		"none of the %d series belongs to a node, for example %s: set nodeLabel to the label with the node's name",
		len(vector),
		example(vector),
	)}
}

// set sets a value of a node. If several series belong to the node, the highest value is used.
func set(node *load.Node, series load.Series, value float64) {
	switch series {
	case load.CPUMean:
		node.CPU.Mean, node.HasCPU = max(node.CPU.Mean, value), true
	case load.CPUStdDev:
		node.CPU.StdDev = max(node.CPU.StdDev, value)
	case load.MemoryMean:
		node.Memory.Mean, node.HasMemory = max(node.Memory.Mean, value), true
	case load.MemoryStdDev:
		node.Memory.StdDev = max(node.Memory.StdDev, value)
	}
}

func example(vector model.Vector) string {
	if len(vector) == 0 {
		return "{}"
	}
	return vector[0].Metric.String()
}

// nodeNames maps hosts to nodes.
type nodeNames struct {
	cluster.Names
	// byHost are the node names that node-exporter exports, by host; nil if the nodes are known.
	byHost map[string]string
}

// nodeNames returns the mapping of hosts to nodes.
func (s *Source) nodeNames(ctx context.Context) (nodeNames, error) {
	if s.config.NodeLabel != "" {
		return nodeNames{}, nil
	}
	if s.nodes != nil {
		nodes, err := s.nodes()
		return nodeNames{Names: cluster.NamesOf(nodes)}, err
	}
	vector, err := s.vector(ctx, fmt.Sprintf("max by (instance, nodename) (%s)", selector(&s.config, "node_uname_info")), time.Time{})
	if err != nil {
		return nodeNames{}, err
	}
	byHost := make(map[string]string, len(vector))
	for _, sample := range vector {
		byHost[cluster.Host(string(sample.Metric[instanceLabel]))] = string(sample.Metric["nodename"])
	}
	return nodeNames{byHost: byHost}, nil
}

// node returns the node that a series belongs to, and whether there is one.
func (s *Source) node(metric model.Metric, names nodeNames) (string, bool) {
	if s.config.NodeLabel != "" {
		name := string(metric[model.LabelName(s.config.NodeLabel)])
		return name, name != ""
	}
	for _, label := range nodeLabels {
		if name := metric[label]; name != "" {
			return names.Resolve(string(name))
		}
	}
	host := cluster.Host(string(metric[instanceLabel]))
	if name := names.byHost[host]; name != "" && net.ParseIP(host) != nil {
		return name, true
	}
	return names.Resolve(host)
}
