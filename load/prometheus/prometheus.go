// Package prometheus reads load from a Prometheus server, or from anything
// else that answers its queries: Thanos, Mimir, VictoriaMetrics.
//
// A read is one query for each series, of all nodes at once and evaluated at
// the server's own time. One that fails loses its own series only.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/api"
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

// maxBytes is the size of the largest response to one query; that for 5,000 nodes has about 1 MiB.
const maxBytes = 32 << 20

// notFraction is where a value is no rounding of 1 any more, but a percentage
// or a number of cores.
const notFraction = 1.5

// Source is a Prometheus server.
type Source struct {
	config metricprovider.Config
	nodes  cluster.Inventory
	server *endpoint.Endpoint
	api    promv1.API
	// preferred is the alternative of each series that had an answer last.
	preferred [4]atomic.Int32
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// New returns the source of a configuration, or an error that names the field. nodes are the nodes of
// the cluster, which series with addresses are matched with; without them, the metric
// node_uname_info of node-exporter maps addresses to nodes.
func New(config metricprovider.Config, nodes cluster.Inventory) (*Source, error) {
	window, step, rateWindow := &config.Window.Duration, &config.Step.Duration, &config.RateWindow.Duration
	setDefault(window, defaultWindow)
	setDefault(step, min(defaultStep, *window))
	setDefault(rateWindow, min(defaultRateWindow, *window))
	switch {
	case *window < time.Second || *step < time.Second || *rateWindow < time.Second:
		return nil, fmt.Errorf("window %s, step %s, rateWindow %s: want at least 1s each", *window, *step, *rateWindow)
	case *step > *window:
		return nil, fmt.Errorf("step: found %s, want at most the window, %s", *step, *window)
	case config.NodeLabel != "" && !labelName.MatchString(config.NodeLabel):
		return nil, fmt.Errorf("nodeLabel: found %q, want the name of a label such as node", config.NodeLabel)
	}
	server, err := endpoint.New(config, endpoint.Options{Type: metricprovider.Prometheus, MaxBytes: maxBytes})
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(api.Config{Address: server.URL.String(), Client: server.Client()})
	if err != nil {
		return nil, err
	}
	return &Source{config: config, nodes: nodes, server: server, api: promv1.NewAPI(client)}, nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// String names the server in messages.
func (s *Source) String() string { return "Prometheus at " + s.server.URL.String() }

// Asked returns the queries for a series, the preferred one first.
func (s *Source) Asked(series load.Series) []string { return alternatives(&s.config, series) }

// Read asks for all series.
func (s *Source) Read(ctx context.Context) (load.Reading, error) {
	names, err := s.names(ctx)
	if err != nil {
		return load.Reading{}, err
	}
	var answers [4]model.Vector
	var errs [4]error
	var asking sync.WaitGroup
	for i, series := range load.AllSeries {
		asking.Go(func() { answers[i], errs[i] = s.ask(ctx, i, series) })
	}
	asking.Wait()
	reading := load.Reading{Source: metricprovider.Prometheus, Window: s.config.Window.Duration, Nodes: map[string]load.Node{}, Lost: map[load.Series]error{}}
	for i, series := range load.AllSeries {
		if errs[i] == nil {
			errs[i] = s.add(&reading, series, answers[i], names)
		}
		if errs[i] != nil {
			reading.Lost[series] = errs[i]
		}
	}
	if errs[0] != nil && errs[2] != nil {
		return load.Reading{}, cause(errs[0], errs[2])
	}
	for name, node := range reading.Nodes {
		if !node.HasCPU && !node.HasMemory {
			delete(reading.Nodes, name) // a deviation of nothing
		}
	}
	return reading, nil
}

// cause returns one error for two, which mostly are the same.
func cause(cpu, memory error) error {
	if cpu.Error() == memory.Error() || load.ReasonOf(cpu) == load.ReasonOf(memory) && load.ReasonOf(cpu) != load.Invalid {
		return cpu
	}
	return errors.Join(cpu, memory)
}

// ask returns the answer to the query for a series.
func (s *Source) ask(ctx context.Context, i int, series load.Series) (model.Vector, error) {
	alternatives := alternatives(&s.config, series)
	first := int(s.preferred[i].Load())
	for n := range alternatives {
		n = (first + n) % len(alternatives)
		vector, err := s.query(ctx, alternatives[n])
		if err != nil {
			return nil, err
		}
		if len(vector) > 0 {
			s.preferred[i].Store(int32(n)) //nolint:gosec // one of two
			return vector, nil
		}
	}
	return nil, &load.Error{Reason: load.Empty, Err: fmt.Errorf("no series answer the query %s; is node-exporter scraped, do the labels match?", alternatives[len(alternatives)-1])}
}

func (s *Source) query(ctx context.Context, query string) (model.Vector, error) {
	value, _, err := s.api.Query(ctx, query, time.Time{})
	var refused *load.Error
	var failed *promv1.Error
	switch {
	case errors.As(err, &refused):
		return nil, refused
	case errors.As(err, &failed) && (failed.Type == promv1.ErrBadData || failed.Type == promv1.ErrExec):
		return nil, fmt.Errorf("query %s: %s", query, failed.Msg)
	case err != nil:
		return nil, err
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("query %s: the answer is a %s, want a vector with one sample for every node", query, value.Type())
	}
	return vector, nil
}

// add puts the samples of a series into a reading.
func (s *Source) add(reading *load.Reading, series load.Series, vector model.Vector, names names) error {
	slices.SortFunc(vector, func(a, b *model.Sample) int { return compareMetrics(a.Metric, b.Metric) })
	taken, strange := 0, math.NaN()
	for _, sample := range vector {
		name, known := s.node(sample.Metric, names)
		value := float64(sample.Value)
		if value < 0 && value > -0.01 {
			value = 0 // a counter read a moment apart from another
		}
		if !known || !(value >= 0 && value <= notFraction) {
			reading.Rejected++
			if known {
				strange = value
			}
			continue
		}
		taken++
		if at := sample.Timestamp.Time(); reading.Time.IsZero() || at.Before(reading.Time) {
			reading.Time = at
		}
		node := reading.Nodes[name]
		set(&node, series, min(value, 1))
		reading.Nodes[name] = node
	}
	switch {
	case taken > 0:
		return nil
	case !math.IsNaN(strange):
		return fmt.Errorf("all values are outside [0, 1], such as %v: want fractions of the node's capacity", strange)
	}
	return &load.Error{Reason: load.Empty, Err: fmt.Errorf("none of the %d series belongs to a node, such as %s; set nodeLabel to the label that has the node's name", len(vector), example(vector))}
}

// set puts a value into a node. Of two series of the same node, the higher one
// counts.
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

func compareMetrics(a, b model.Metric) int {
	switch {
	case a.Before(b):
		return -1
	case b.Before(a):
		return 1
	}
	return 0
}

func example(vector model.Vector) string {
	if len(vector) == 0 {
		return "{}"
	}
	return vector[0].Metric.String()
}

// names say which node a host is.
type names struct {
	cluster.Names
	// byHost are the names that hosts give themselves; nil if nobody asked.
	byHost map[string]string
}

// names returns what is known of the names of nodes.
func (s *Source) names(ctx context.Context) (names, error) {
	if s.config.NodeLabel != "" {
		return names{}, nil
	}
	if s.nodes != nil {
		machines, err := s.nodes()
		return names{Names: cluster.NamesOf(machines)}, err
	}
	vector, err := s.query(ctx, fmt.Sprintf("max by (instance, nodename) (%s)", selector(&s.config, "node_uname_info")))
	if err != nil {
		return names{}, err
	}
	byHost := make(map[string]string, len(vector))
	for _, sample := range vector {
		byHost[cluster.Host(string(sample.Metric[instanceLabel]))] = string(sample.Metric["nodename"])
	}
	return names{byHost: byHost}, nil
}

// node returns the node that a series belongs to.
func (s *Source) node(metric model.Metric, names names) (string, bool) {
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
