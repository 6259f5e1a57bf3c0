package signalfx

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// limits are the times of samples that count.
type limits struct {
	// start and end are the first and the last.
	start, end time.Time
	// fresh is the first that the newest sample of a node may have.
	fresh time.Time
}

// part is what one metric says.
type part struct {
	nodes map[string]summary
	// stale are the nodes that it has only old samples of.
	stale []string
	// rejected is the number of samples without sense, and of the series that
	// belong to no node, which are foreign.
	rejected, foreign int
}

// summary is what the samples of one series come to.
type summary struct {
	load.Utilization
	// newest is the time of the newest one, zero if none makes sense.
	newest time.Time
}

// collect works out the load of nodes from the samples of series. Of two series
// of the same node, the one with the newer sample counts; of two that are as
// new, the one whose id comes first.
func collect(data map[string]samples, hosts map[string]string, resolve func(string) (string, bool), limits limits) part {
	p := part{nodes: make(map[string]summary, len(data))}
	for _, id := range slices.Sorted(maps.Keys(data)) {
		host := hosts[id]
		node, known := "", false
		if host != "" {
			node, known = resolve(host)
		}
		if !known || node == "" {
			p.foreign++
			p.rejected++
			continue
		}
		series, rejected := summarize(data[id], limits)
		p.rejected += rejected
		if series.newest.After(p.nodes[node].newest) {
			p.nodes[node] = series
		}
	}
	for node, series := range p.nodes {
		if series.newest.Before(limits.fresh) {
			p.stale = append(p.stale, node)
			delete(p.nodes, node)
		}
	}
	return p
}

// summarize returns the mean and the population's standard deviation of samples,
// as fractions, and how many of them make no sense. More than 100 percent are
// 100.
func summarize(list samples, limits limits) (summary, int) {
	start, end := limits.start.UnixMilli(), limits.end.UnixMilli()
	sensible := func(s sample) bool {
		return s.value >= 0 && !math.IsInf(s.value, 1) && s.at >= start && s.at <= end
	}
	var sum float64
	var newest int64
	n := 0
	for _, s := range list {
		if sensible(s) {
			n++
			sum += min(s.value, 100)
			newest = max(newest, s.at)
		}
	}
	rejected := len(list) - n
	if n == 0 {
		return summary{}, rejected
	}
	mean := sum / float64(n)
	var squares float64
	for _, s := range list {
		if sensible(s) {
			difference := min(s.value, 100) - mean
			squares += difference * difference
		}
	}
	deviation := math.Sqrt(squares / float64(n))
	// Rounding may lead out of what is possible, by the last digit.
	utilization := load.Utilization{Mean: min(mean/100, 1), StdDev: min(deviation/100, 0.5)}
	return summary{Utilization: utilization, newest: time.UnixMilli(newest)}, rejected
}

// add puts a metric's part into a reading.
func (m *metric) add(reading *load.Reading, p part) {
	reading.Rejected += p.rejected
	for name, series := range p.nodes {
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
	}
}
