// Package signalfx reads load from SignalFx, which is Splunk Observability
// Cloud, over two endpoints of its public REST API:
//
//	GET {api}/v1/timeserieswindow    the samples of a window of time, by the ids of their series
//	GET {api}/v2/metrictimeseries    what series there are, and of which host each of them is
//
// Both are asked with a token in the header X-SF-TOKEN: an organization's access
// token with the scope API, or a session token. The service shows at most 10,000
// series to one query; where more match, a read is an error, not a part of them.
//
// A read is one request for the samples of each metric. What series there are is
// asked when it is not known yet, when an unknown one shows up, and every ten
// minutes. A metric that fails loses its own two series of figures only.
package signalfx

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/cluster"
	"github.com/plimsoll-k8s/plimsoll/load/endpoint"
)

// The defaults of the configuration.
const (
	defaultCPUMetric     = "cpu.utilization"
	defaultMemoryMetric  = "memory.utilization"
	defaultHostDimension = "host"
	defaultWindow        = 15 * time.Minute
	defaultResolution    = time.Minute
)

// resolutions are the times between two samples that the service stores.
var resolutions = []time.Duration{time.Second, time.Minute, 5 * time.Minute, time.Hour}

// maxBytes is the size of the largest response. The samples of one metric of 5,000 nodes take
// about 2 MiB at the defaults, and 60 times that at a resolution of 1s.
const maxBytes = 64 << 20

const (
	// tokenHeader is where the service wants its token.
	tokenHeader = "X-SF-TOKEN"
	// minStale is the least age at which a node's newest sample is an old one:
	// samples come to the service with a delay.
	minStale = 5 * time.Minute
	// maxMetricName is the longest name of a metric, in characters.
	maxMetricName = 256
)

// Source is a SignalFx organization.
type Source struct {
	config  metricprovider.Config
	nodes   cluster.Inventory
	server  *endpoint.Endpoint
	metrics [2]*metric
	now     func() time.Time
}

// metric is one of the two that are read.
type metric struct {
	name, query string
	// mean and deviation are what is lost when it cannot be read.
	mean, deviation load.Series
	// catalog is what series it was last seen to have, nil if never.
	catalog atomic.Pointer[catalog]
}

// dimensionName is what names of dimensions look like; dots are those of
// OpenTelemetry, as in host.name.
var dimensionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,127}$`)

// New returns the source of a configuration, or an error that names the field. nodes are the nodes of
// the cluster, which hosts are matched with by name and address; without them, the name of a host
// is the name of its node. The step of the configuration is the resolution of the samples.
func New(config metricprovider.Config, nodes cluster.Inventory) (*Source, error) {
	setDefault(&config.CPUMetric, defaultCPUMetric)
	setDefault(&config.MemoryMetric, defaultMemoryMetric)
	setDefault(&config.HostDimension, defaultHostDimension)
	setDefault(&config.Window.Duration, defaultWindow)
	setDefault(&config.Step.Duration, defaultResolution)
	config.Filter = strings.TrimSpace(config.Filter)
	if err := validate(&config); err != nil {
		return nil, err
	}
	server, err := endpoint.New(config, endpoint.Options{Type: metricprovider.SignalFx, TokenHeader: tokenHeader, MaxBytes: maxBytes})
	if err != nil {
		return nil, err
	}
	return &Source{config: config, nodes: nodes, server: server, now: time.Now, metrics: [2]*metric{
		{name: config.CPUMetric, query: query(&config, config.CPUMetric), mean: load.CPUMean, deviation: load.CPUStdDev},
		{name: config.MemoryMetric, query: query(&config, config.MemoryMetric), mean: load.MemoryMean, deviation: load.MemoryStdDev},
	}}, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate returns an error that names a field, the value found and the values allowed.
func validate(c *metricprovider.Config) error {
	for _, name := range []struct{ field, value string }{{"cpuMetric", c.CPUMetric}, {"memoryMetric", c.MemoryMetric}} {
		// With a wildcard, other metrics would be taken for utilization.
		if !utf8.ValidString(name.value) || utf8.RuneCountInString(name.value) > maxMetricName || strings.TrimSpace(name.value) == "" ||
			strings.ContainsFunc(name.value, func(r rune) bool { return r == '*' || unicode.IsControl(r) }) {
			return fmt.Errorf("%s: found %q, want the name of one metric, without wildcards and of at most %d characters", name.field, name.value, maxMetricName)
		}
	}
	switch {
	case c.CPUMetric == c.MemoryMetric:
		return fmt.Errorf("cpuMetric, memoryMetric: found %q for both, want two metrics", c.CPUMetric)
	case !dimensionName.MatchString(c.HostDimension):
		return fmt.Errorf("hostDimension: found %q, want the name of a dimension such as host or host.name", c.HostDimension)
	case !slices.Contains(resolutions, c.Step.Duration):
		return fmt.Errorf("step: found %s, want one of 1s, 1m, 5m, 1h", c.Step.Duration)
	case c.Window.Duration < c.Step.Duration:
		return fmt.Errorf("window: found %s, want at least the step, %s", c.Window.Duration, c.Step.Duration)
	}
	return nil
}

// String names the source in messages.
func (s *Source) String() string { return "SignalFx at " + s.server.URL.String() }

// Read gets the samples of both metrics. The reading is as old as its newest
// sample.
func (s *Source) Read(ctx context.Context) (load.Reading, error) {
	resolve, err := s.resolver()
	if err != nil {
		return load.Reading{}, err
	}
	now := s.now()
	var parts [2]part
	var errs [2]error
	var asking sync.WaitGroup
	for i, m := range s.metrics {
		asking.Go(func() { parts[i], errs[i] = s.read(ctx, m, resolve, now) })
	}
	asking.Wait()
	reading := load.Reading{Source: metricprovider.SignalFx, Window: s.config.Window.Duration, Nodes: map[string]load.Node{}, Lost: map[load.Series]error{}}
	for i, m := range s.metrics {
		if errs[i] != nil {
			reading.Lost[m.mean], reading.Lost[m.deviation] = errs[i], errs[i]
			continue
		}
		m.add(&reading, parts[i])
	}
	if errs[0] != nil && errs[1] != nil {
		return load.Reading{}, bothLost(errs[0], errs[1])
	}
	// A sample that is ahead of this clock does not make the others newer, nor the
	// next reading older than this one.
	if reading.Time.After(now) {
		reading.Time = now
	}
	stale := map[string]bool{}
	for _, part := range parts {
		for _, node := range part.stale {
			if _, fresh := reading.Nodes[node]; !fresh {
				stale[node] = true
			}
		}
	}
	reading.Stale = len(stale)
	return reading, nil
}

// resolver returns how to find the node that a host is.
func (s *Source) resolver() (func(string) (string, bool), error) {
	if s.nodes != nil {
		machines, err := s.nodes()
		return cluster.NamesOf(machines).Resolve, err
	}
	return func(host string) (string, bool) { return host, true }, nil
}

// read returns what a metric says of all nodes.
func (s *Source) read(ctx context.Context, m *metric, resolve func(string) (string, bool), now time.Time) (part, error) {
	// The service puts samples where its resolution has its marks. Without this,
	// the first one of every series would be before the window.
	start := now.Add(-s.config.Window.Duration).Truncate(s.config.Step.Duration)
	data, err := s.samples(ctx, m, start, now)
	if err != nil {
		return part{}, err
	}
	if len(data) == 0 {
		return part{}, &load.Error{Reason: load.Empty, Err: fmt.Errorf("no series has samples of the last %s for the query %s; %s", s.config.Window.Duration, m.query, s.advice(m))}
	}
	hosts, err := s.hosts(ctx, m, data, now)
	if err != nil {
		return part{}, err
	}
	p := collect(data, hosts, resolve, limits{start: start, end: now.Add(load.MaxAhead), fresh: now.Add(-s.staleAfter())})
	if len(p.nodes) > 0 {
		return p, nil
	}
	switch {
	case len(p.stale) > 0:
		err = &load.Error{Reason: load.Empty, Err: fmt.Errorf("the newest samples of all %d nodes for the query %s are older than %s", len(p.stale), m.query, s.staleAfter())}
	case p.foreign == len(data):
		err = &load.Error{Reason: load.Empty, Err: fmt.Errorf("none of the %d series for the query %s belongs to a node; %s", len(data), m.query, s.advice(m))}
	default:
		err = &load.Error{Reason: load.Invalid, Err: fmt.Errorf("no sample for the query %s makes sense: want percent, 0 to 100, of the last %s", m.query, s.config.Window.Duration)}
	}
	return part{}, err
}

// staleAfter is the age from which on a node's newest sample is an old one.
func (s *Source) staleAfter() time.Duration { return max(3*s.config.Step.Duration, minStale) }

// advice says what to look at where nothing was found.
func (s *Source) advice(m *metric) string {
	if s.config.Filter == "" {
		return fmt.Sprintf("check the name of the metric %s and the dimension %s", m.name, s.config.HostDimension)
	}
	return fmt.Sprintf("check the name of the metric %s, the dimension %s and the filter %s", m.name, s.config.HostDimension, s.config.Filter)
}

// bothLost returns one error for two, which mostly are the same. Of two, the one
// comes first, and so decides, that asks for the longer rest.
func bothLost(cpu, memory error) error {
	first, second := cpu, memory
	if retryAfter(memory) > retryAfter(cpu) {
		first, second = memory, cpu
	}
	if first.Error() == second.Error() {
		return first
	}
	return fmt.Errorf("%w; %w", first, second)
}

func retryAfter(err error) time.Duration {
	if typed, ok := errors.AsType[*load.Error](err); ok {
		return typed.RetryAfter
	}
	return 0
}
