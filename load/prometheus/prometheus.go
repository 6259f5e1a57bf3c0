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
	"maps"
	"math"
	"net"
	"regexp"
	"slices"
	"sync"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
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
	nodes  load.Inventory
	// isWindowFull is set once the server has samples of the whole window.
	isWindowFull bool
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// New returns the source of a configuration, or an error that names the field. nodes are the nodes of
// the cluster, which series with addresses are matched with; without them, the metric
// node_uname_info of node-exporter maps addresses to nodes.
func New(config metricprovider.Config, nodes load.Inventory) (*Source, error) {
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

// Read queries all series.
func (s *Source) Read(ctx context.Context) (load.Reading, error) {
	names, err := s.nodeNames(ctx)
	if err != nil {
		return load.Reading{}, err
	}
	var values [4]nodeValues
	var errs [4]error
	var group sync.WaitGroup
	for i, series := range load.AllSeries {
		group.Go(func() { values[i], errs[i] = s.querySeries(ctx, series, names) })
	}
	group.Wait()
	reading := load.Reading{
		Source: metricprovider.Prometheus, Window: s.covered(ctx),
		Nodes: map[string]load.Node{}, Lost: map[load.Series]error{},
	}
	for i, series := range load.AllSeries {
		reading.Rejected += values[i].rejected
		reading.Warnings = append(reading.Warnings, values[i].warnings...)
		if errs[i] != nil {
			reading.Lost[series] = errs[i]
			continue
		}
		if reading.Time.IsZero() || values[i].oldest.Before(reading.Time) {
			reading.Time = values[i].oldest
		}
		for name, value := range values[i].byNode {
			node := reading.Nodes[name]
			set(&node, series, value)
			reading.Nodes[name] = node
		}
	}
	slices.Sort(reading.Warnings)
	reading.Warnings = slices.Compact(reading.Warnings)
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

// covered returns the time that the samples of the window cover, which is less than the window while the server is young: the age of
// the oldest sample of memory, unless the queries are configured.
func (s *Source) covered(ctx context.Context) time.Duration {
	window := s.config.Window.Duration
	if s.isWindowFull || s.config.Queries != (metricprovider.Queries{}) {
		return window
	}
	ages, _, err := s.vector(ctx, fmt.Sprintf("time() - min(min_over_time(timestamp(%s)[%s:%s]))",
		selector(&s.config, "node_memory_MemAvailable_bytes"), promDuration(s.config.Window), promDuration(s.config.Step)), time.Time{})
	if err != nil || len(ages) != 1 {
		return window
	}
	covered := time.Duration(float64(ages[0].Value) * float64(time.Second))
	if s.isWindowFull = covered > window-s.config.Step.Duration; s.isWindowFull {
		return window
	}
	return max(covered, s.config.Step.Duration).Round(time.Second)
}

// nodeValues has the values of a series by node.
type nodeValues struct {
	byNode   map[string]float64
	clusters clusters
	oldest   time.Time
	rejected int
	warnings []string
	// invalid is a value of a node that is no fraction.
	invalid *model.Sample
}

// querySeries returns the values of a series. Each query completes the nodes that the queries before it lack, such as a recording rule that
// covers some of the nodes.
func (s *Source) querySeries(ctx context.Context, series load.Series, names nodeNames) (nodeValues, error) {
	values := nodeValues{byNode: map[string]float64{}, clusters: clusters{}}
	alternatives, samples, foreign := alternatives(&s.config, series), 0, "{}"
	for _, query := range alternatives {
		vector, warnings, err := s.vector(ctx, query, time.Time{})
		if err != nil {
			return values, err
		}
		values.warnings = append(values.warnings, warnings...)
		if samples += len(vector); len(vector) > 0 {
			foreign = vector[0].Metric.String()
		}
		if err := values.add(s, vector, names); err != nil {
			return values, err
		}
		if n := len(values.byNode); n > 0 && n >= names.count {
			break
		}
	}
	switch {
	case len(values.byNode) > 0:
		return values, nil
	case values.invalid != nil:
		return values, fmt.Errorf("all values are outside [0, 1], such as %v: must be fractions of the node's capacity",
			values.invalid.Value)
	case samples == 0:
		return values, load.Errorf(load.Empty, "%s: no data: check that node-exporter is scraped and that the labels match",
			nameOf(alternatives[len(alternatives)-1]))
	}
	return values, load.Errorf(load.Empty, "none of the %d series belongs to a node, for example %s: set nodeLabel to the label with the "+
		"node's name or address", samples, foreign)
}

// exported matches the names of the metrics of node-exporter and of the kubelet.
var exported = regexp.MustCompile(`\b(node|container)_\w+`)

// nameOf returns the name of a query in errors: a long one is named by its first metric.
func nameOf(query string) string {
	if metric := exported.FindString(query); len(query) > 100 && metric != "" {
		return metric
	}
	return "query " + query
}

// vector returns the result of a query with the warnings of the server at a time, the current time of the server if it is zero.
func (c *Client) vector(ctx context.Context, query string, at time.Time) (model.Vector, promv1.Warnings, error) {
	vector, warnings, err := c.Query(ctx, query, at)
	if apiErr, ok := errors.AsType[*promv1.Error](err); ok && (apiErr.Type == promv1.ErrBadData || apiErr.Type == promv1.ErrExec) {
		return nil, nil, fmt.Errorf("query %s: %s", query, apiErr.Msg)
	}
	return vector, warnings, err
}

// add adds the samples of a query for nodes that have no value yet. If several series belong to one node, the highest value is used, unless
// they are from different clusters. A value above maxFraction means that the query has another unit.
func (v *nodeValues) add(s *Source, vector model.Vector, names nodeNames) error {
	earlier := maps.Clone(v.byNode)
	for _, sample := range vector {
		name, known := s.node(sample.Metric, names)
		value := float64(sample.Value)
		if value < 0 && value > -0.01 {
			value = 0 // counters are not read at exactly the same time
		}
		if _, found := earlier[name]; found {
			continue
		}
		if known && value > maxFraction && !math.IsInf(value, 1) {
			return fmt.Errorf("found %v for node %s: must be a fraction of the node's capacity in [0, 1]", sample.Value, name)
		}
		if !known || !(value >= 0 && value <= maxFraction) {
			v.rejected++
			if known {
				v.invalid = sample
			}
			continue
		}
		if err := v.clusters.add("node "+name, sample.Metric); err != nil {
			return err
		}
		v.byNode[name] = max(v.byNode[name], min(value, 1))
		if at := sample.Timestamp.Time(); v.oldest.IsZero() || at.Before(v.oldest) {
			v.oldest = at
		}
	}
	return nil
}

// set sets a value of a node.
func set(node *load.Node, series load.Series, value float64) {
	switch series {
	case load.CPUMean:
		node.CPU.Mean, node.HasCPU = value, true
	case load.CPUStdDev:
		node.CPU.StdDev = value
	case load.MemoryMean:
		node.Memory.Mean, node.HasMemory = value, true
	case load.MemoryStdDev:
		node.Memory.StdDev = value
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
	load.Names
	// byHost are the node names that node-exporter exports, by host; nil if the nodes are known.
	byHost map[string]string
	// count is the number of nodes as far as they are known.
	count int
}

// nodeNames returns the mapping of hosts to nodes.
func (s *Source) nodeNames(ctx context.Context) (nodeNames, error) {
	if s.nodes != nil {
		nodes, err := s.nodes()
		// No nodes are known until the first list: the label alone then names the node.
		if err != nil || len(nodes) > 0 || s.config.NodeLabel == "" {
			return nodeNames{Names: load.NamesOf(nodes), count: len(nodes)}, err
		}
	}
	if s.config.NodeLabel != "" {
		return nodeNames{}, nil
	}
	vector, _, err := s.vector(ctx, fmt.Sprintf("max by (instance, nodename) (%s)", selector(&s.config, "node_uname_info")), time.Time{})
	if err != nil {
		return nodeNames{}, err
	}
	byHost := make(map[string]string, len(vector))
	for _, sample := range vector {
		byHost[load.Host(string(sample.Metric[instanceLabel]))] = string(sample.Metric["nodename"])
	}
	return nodeNames{byHost: byHost, count: len(byHost)}, nil
}

// node returns the node that a series belongs to, and whether there is one: that of the first label that names a node, or else that of the
// address.
func (s *Source) node(metric model.Metric, names nodeNames) (string, bool) {
	if label := s.config.NodeLabel; label != "" {
		return names.Resolve(load.Host(string(metric[model.LabelName(label)])))
	}
	for _, label := range nodeLabels {
		if node, known := names.Resolve(string(metric[label])); known {
			return node, true
		}
	}
	host := load.Host(string(metric[instanceLabel]))
	if name := names.byHost[host]; name != "" && net.ParseIP(host) != nil {
		return name, true
	}
	return names.Resolve(host)
}
