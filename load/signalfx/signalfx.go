// Package signalfx reads load from SignalFx (Splunk Observability Cloud), with two endpoints of its public
// REST API:
//
//	GET {api}/v1/timeserieswindow    samples of a window of time, by series ID
//	GET {api}/v2/metrictimeseries    the list of series with their hosts
//
// Requests have a token in the header X-SF-TOKEN: an organization's access token with the scope API, or a
// session token. The service returns at most 10,000 series per query; if more match, the read fails.
//
// A read sends one request for the samples of each metric. It requests the list of series first, when
// samples of an unlisted series appear, and every ten minutes. If the requests for a metric fail, only the
// series of that metric are lost.
package signalfx

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
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

// maxBytes is the size of the largest response. The samples of one metric for 5,000 nodes have about 2 MiB
// at the default resolution, and 60 times as much at a resolution of 1s.
const maxBytes = 64 << 20

const (
	// tokenHeader is the header for the token.
	tokenHeader = "X-SF-TOKEN"
	// minStale is the smallest age at which a node is stale; samples reach the service with a delay.
	minStale = 5 * time.Minute
	// maxMetricName is the length of the longest name of a metric, in characters.
	maxMetricName = 256
	// advice names the fields of the configuration to check if no data was found.
	advice = "check cpuMetric, memoryMetric, hostDimension and filter"
)

// Source reads the metrics of a SignalFx organization.
type Source struct {
	config  metricprovider.Config
	nodes   load.Inventory
	server  *endpoint.Endpoint
	metrics [2]*metric
	now     func() time.Time
}

// metric is a metric of CPU or memory utilization.
type metric struct {
	name, query string
	// mean and stdDev are the series of the metric.
	mean, stdDev load.Series
	// catalog is the last list of the series of the metric, nil before the first.
	catalog atomic.Pointer[catalog]
}

// dimensionName matches the names of dimensions. OpenTelemetry uses dots, as in host.name.
var dimensionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,127}$`)

// New returns the source of a configuration, or an error that names the field. nodes are the nodes of
// the cluster, which hosts are matched with by name and address; without them, the name of a host
// is the name of its node. The step of the configuration is the resolution of the samples.
func New(config metricprovider.Config, nodes load.Inventory) (*Source, error) {
	config.CPUMetric = cmp.Or(config.CPUMetric, defaultCPUMetric)
	config.MemoryMetric = cmp.Or(config.MemoryMetric, defaultMemoryMetric)
	config.HostDimension = cmp.Or(config.HostDimension, defaultHostDimension)
	config.Window.Duration = cmp.Or(config.Window.Duration, defaultWindow)
	config.Step.Duration = cmp.Or(config.Step.Duration, defaultResolution)
	config.Filter = strings.TrimSpace(config.Filter)
	if err := validate(&config); err != nil {
		return nil, err
	}
	server, err := endpoint.New(config, endpoint.Options{Type: metricprovider.SignalFx, TokenHeader: tokenHeader, MaxBytes: maxBytes})
	if err != nil {
		return nil, err
	}
	return &Source{config: config, nodes: nodes, server: server, now: time.Now, metrics: [2]*metric{
		{name: config.CPUMetric, query: query(&config, config.CPUMetric), mean: load.CPUMean, stdDev: load.CPUStdDev},
		{name: config.MemoryMetric, query: query(&config, config.MemoryMetric), mean: load.MemoryMean, stdDev: load.MemoryStdDev},
	}}, nil
}

// validate returns an error that names a field, the value found and the values allowed.
func validate(c *metricprovider.Config) error {
	for _, name := range []struct{ field, value string }{{"cpuMetric", c.CPUMetric}, {"memoryMetric", c.MemoryMetric}} {
		// A wildcard could match other metrics.
		if !utf8.ValidString(name.value) || utf8.RuneCountInString(name.value) > maxMetricName || strings.TrimSpace(name.value) == "" ||
			strings.ContainsFunc(name.value, func(r rune) bool { return r == '*' || unicode.IsControl(r) }) {
			return fmt.Errorf("%s: invalid value %q: must be the name of one metric without wildcards, at most %d characters",
				name.field, name.value, maxMetricName)
		}
	}
	switch {
	case c.CPUMetric == c.MemoryMetric:
		return fmt.Errorf("cpuMetric, memoryMetric: invalid value %q: must be two different metrics", c.CPUMetric)
	case !dimensionName.MatchString(c.HostDimension):
		return fmt.Errorf("hostDimension: invalid value %q: must be the name of a dimension such as host or host.name", c.HostDimension)
	case !slices.Contains(resolutions, c.Step.Duration):
		return fmt.Errorf("step: invalid value %s: must be one of 1s, 1m, 5m, 1h", c.Step.Duration)
	case c.Window.Duration < c.Step.Duration:
		return fmt.Errorf("window: invalid value %s: must be at least the step, %s", c.Window.Duration, c.Step.Duration)
	}
	return nil
}

// String returns the URL of the API, for messages.
func (s *Source) String() string { return "SignalFx at " + s.server.URL.String() }

// Read requests the samples of both metrics. The time of the reading is the time of its newest sample.
func (s *Source) Read(ctx context.Context) (load.Reading, error) {
	resolve, err := s.resolver()
	if err != nil {
		return load.Reading{}, err
	}
	now := s.now()
	var results [2]metricResult
	var errs [2]error
	var group sync.WaitGroup
	for i, m := range s.metrics {
		group.Go(func() { results[i], errs[i] = s.read(ctx, m, resolve, now) })
	}
	group.Wait()
	reading := load.Reading{
		Source: metricprovider.SignalFx,
		Nodes:  map[string]load.Node{}, Lost: map[load.Series]error{},
	}
	for i, m := range s.metrics {
		if errs[i] != nil {
			reading.Lost[m.mean], reading.Lost[m.stdDev] = errs[i], errs[i]
			continue
		}
		m.add(&reading, results[i], &s.config)
	}
	if errs[0] != nil && errs[1] != nil {
		return load.Reading{}, load.JoinErrors(errs[0], errs[1])
	}
	// A sample ahead of the local clock must not set the reading's time in the future: later readings would be
	// out of order.
	if reading.Time.After(now) {
		reading.Time = now
	}
	stale := sets.New(slices.Concat(results[0].stale, results[1].stale)...)
	reading.Stale = stale.Difference(sets.KeySet(reading.Nodes)).Len()
	return reading, nil
}

// resolver returns the function that maps a host to its node.
func (s *Source) resolver() (func(string) (string, bool), error) {
	if s.nodes != nil {
		nodes, err := s.nodes()
		return load.NamesOf(nodes).Resolve, err
	}
	return func(host string) (string, bool) { return host, true }, nil
}

// read returns the utilization of all nodes from one metric.
func (s *Source) read(ctx context.Context, m *metric, resolve func(string) (string, bool), now time.Time) (metricResult, error) {
	// Times of samples are multiples of the resolution. Without truncation, the first sample of every
	// series would be before the window.
	start := now.Add(-s.config.Window.Duration).Truncate(s.config.Step.Duration)
	data, err := s.samples(ctx, m, start, now)
	if err != nil {
		return metricResult{}, err
	}
	if len(data) == 0 {
		return metricResult{}, load.Errorf(load.Empty,
			"query %s: no samples in the last %s: %s", m.query, s.config.Window.Duration, advice)
	}
	hosts, err := s.hosts(ctx, m, data, now)
	if err != nil {
		return metricResult{}, err
	}
	result := collect(data, hosts, resolve, limits{start: start, end: now.Add(load.MaxAhead), fresh: now.Add(-s.staleAfter())})
	switch {
	case len(result.nodes) > 0:
		return result, nil
	case len(result.stale) > 0:
		err = load.Errorf(load.Empty,
			"query %s: the newest samples of all nodes (%d) are older than %s", m.query, len(result.stale), s.staleAfter())
	case result.unmatched == len(data):
		err = load.Errorf(load.Empty, "query %s: none of the %d series belongs to a node: %s", m.query, len(data), advice)
	default:
		err = load.Errorf(load.Invalid,
			"query %s: no valid samples: must be percent, 0 to 100, in the last %s", m.query, s.config.Window.Duration)
	}
	return metricResult{}, err
}

// staleAfter returns the age of its newest sample above which a node is stale.
func (s *Source) staleAfter() time.Duration { return max(3*s.config.Step.Duration, minStale) }
