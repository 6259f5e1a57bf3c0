package signalfx

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// limits are the accepted times of samples.
type limits struct {
	// start and end are the bounds of the window.
	start, end time.Time
	// fresh is the earliest accepted time of a node's newest sample.
	fresh time.Time
}

// metricResult is the utilization of nodes from one metric.
type metricResult struct {
	nodes map[string]summary
	// stale are the nodes with old samples only.
	stale []string
	// unmatched is the number of series that belong to no node.
	unmatched int
	// rejected is the number of invalid samples and unmatched series.
	rejected int
}

// summary is the utilization from the samples of one series.
type summary struct {
	load.Utilization
	// oldest and newest are the times of the oldest and newest valid samples, zero if there is none.
	oldest, newest time.Time
}

// collect computes the utilization of nodes from the samples of series. If several series belong to a
// node, the series with the newest sample is used; the lowest series ID breaks ties.
func collect(data map[string]samples, hosts map[string]string, resolve func(string) (string, bool), limits limits) metricResult {
	result := metricResult{nodes: make(map[string]summary, len(data))}
	for _, id := range slices.Sorted(maps.Keys(data)) {
		node, known := resolve(hosts[id])
		if !known || node == "" || hosts[id] == "" {
			result.unmatched++
			result.rejected++
			continue
		}
		series, rejected := summarize(data[id], limits)
		result.rejected += rejected
		if series.newest.After(result.nodes[node].newest) {
			result.nodes[node] = series
		}
	}
	for node, series := range result.nodes {
		if series.newest.Before(limits.fresh) {
			result.stale = append(result.stale, node)
			delete(result.nodes, node)
		}
	}
	return result
}

// summarize returns the mean and the population standard deviation of samples, as fractions, and the number
// of invalid samples, which it removes. Values over 100 percent count as 100.
func summarize(list samples, limits limits) (summary, int) {
	start, end, n := limits.start.UnixMilli(), limits.end.UnixMilli(), len(list)
	list = slices.DeleteFunc(list, func(s sample) bool { return !(s.value >= 0) || math.IsInf(s.value, 1) || s.at < start || s.at > end })
	rejected := n - len(list)
	if len(list) == 0 {
		return summary{}, rejected
	}
	var sum, squares float64
	oldest, newest := list[0].at, list[0].at
	for _, s := range list {
		sum += min(s.value, 100)
		oldest, newest = min(oldest, s.at), max(newest, s.at)
	}
	mean := sum / float64(len(list))
	for _, s := range list {
		difference := min(s.value, 100) - mean
		squares += difference * difference
	}
	deviation := math.Sqrt(squares / float64(len(list)))
	// Rounding errors may exceed the valid range.
	utilization := load.Utilization{Mean: min(mean/100, 1), StdDev: min(deviation/100, 0.5)}
	return summary{Utilization: utilization, oldest: time.UnixMilli(oldest), newest: time.UnixMilli(newest)}, rejected
}

// add adds the result of the metric to a reading.
func (m *metric) add(reading *load.Reading, result metricResult, config *metricprovider.Config) {
	reading.Rejected += result.rejected
	for name, series := range result.nodes {
		node := reading.Nodes[name]
		if m.mean == load.CPUMean {
			node.CPU, node.HasCPU = series.Utilization, true
		} else {
			node.Memory, node.HasMemory = series.Utilization, true
		}
		reading.Nodes[name] = node
		if series.newest.After(reading.Time) {
			reading.Time = series.newest
		}
		covered := series.newest.Sub(series.oldest) + config.Step.Duration
		reading.Window = min(max(reading.Window, covered), config.Window.Duration)
	}
}
