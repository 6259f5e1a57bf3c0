package prometheus

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// nodeLabels are the labels that can contain the name of the node, in the order of preference.
var nodeLabels = []model.LabelName{"node", "nodename", "kubernetes_node"}

// instanceLabel is the address that Prometheus scraped.
const instanceLabel model.LabelName = "instance"

// clusterLabel tells clusters in one server apart.
const clusterLabel model.LabelName = "cluster"

// clusters has the label cluster of the series of nodes or pods.
type clusters map[string]model.LabelValue

// add adds the cluster of a series of an object, or returns an error if the object has series of another cluster.
func (c clusters) add(object string, metric model.Metric) error {
	cluster := metric[clusterLabel]
	if earlier := c[object]; cluster != "" && earlier != "" && cluster != earlier {
		return fmt.Errorf("%s has series with %s=%q and %[2]s=%[4]q: set selector to those of its cluster, such as %[2]s=%[3]q",
			object, clusterLabel, earlier, cluster)
	}
	c[object] = cmp.Or(cluster, c[object])
	return nil
}

// alternatives returns the queries for a series in the order of preference. Each completes the nodes that those before it lack.
//
// CPU in use is neither idle, iowait nor steal; memory in use is not available for new programs. These are
// the definitions of the monitoring mixin of node-exporter. Its recording rules are preferred, because
// they cost the server less. The operator "and" removes nodes without current samples, which a window
// would still include.
//
// The rate of a counter that is younger than its window is too low: the increase is divided by the whole window. A new node
// would look busy because the rate of its idle time is too low. Idle time is therefore divided by the time of all modes,
// whose rates are too low by the same factor. The recording rule divides by the number of CPUs: its first samples are left out.
func alternatives(c *metricprovider.Config, series load.Series) []string {
	configured := map[load.Series]string{
		load.CPUMean: c.Queries.CPUAvg, load.CPUStdDev: c.Queries.CPUStd,
		load.MemoryMean: c.Queries.MemoryAvg, load.MemoryStdDev: c.Queries.MemoryStd,
	}
	if query := configured[series]; query != "" {
		return []string{query}
	}
	by := c.NodeLabel
	if by == "" {
		by = string(instanceLabel)
		for _, label := range nodeLabels {
			by += ", " + string(label)
		}
	}
	by += ", " + string(clusterLabel)
	window, step, rate := promDuration(c.Window), promDuration(c.Step), promDuration(c.RateWindow)
	idle := func(over string) string {
		return fmt.Sprintf("1 - sum by (%s) (rate(%s[%s])) / sum by (%s) (rate(%s[%s]))",
			by, selector(c, "node_cpu_seconds_total", `mode=~"idle|iowait|steal"`), over,
			by, selector(c, "node_cpu_seconds_total"), over)
	}
	memory := fmt.Sprintf("1 - max by (%s) (%s) / max by (%s) (%s)",
		by, selector(c, "node_memory_MemAvailable_bytes"), by, selector(c, "node_memory_MemTotal_bytes"))
	over := func(function, expression string) string {
		return fmt.Sprintf("%s((%s)[%s:%s]) and (%s)", function, expression, window, step, expression)
	}
	recorded := func(function, samples, rule string) string {
		return fmt.Sprintf("max by (%s) (%s(%s) and %s)", by, function, samples, rule)
	}
	cpuRule, memoryRule := selector(c, "instance:node_cpu_utilisation:rate5m"), selector(c, "instance:node_memory_utilisation:ratio")
	cpuSamples := fmt.Sprintf("(%s and %s offset 5m)[%s:%s]", cpuRule, cpuRule, window, step)
	memorySamples := fmt.Sprintf("%s[%s]", memoryRule, window)
	switch series {
	case load.CPUMean:
		return []string{recorded("avg_over_time", cpuSamples, cpuRule), fmt.Sprintf("(%s) and (%s)", idle(window), idle(rate))}
	case load.CPUStdDev:
		return []string{recorded("stddev_over_time", cpuSamples, cpuRule), over("stddev_over_time", idle(rate))}
	case load.MemoryMean:
		return []string{recorded("avg_over_time", memorySamples, memoryRule), over("avg_over_time", memory)}
	default:
		return []string{recorded("stddev_over_time", memorySamples, memoryRule), over("stddev_over_time", memory)}
	}
}

// selector returns a metric with its matchers and the selector of the configuration.
func selector(c *metricprovider.Config, metric string, matchers ...string) string {
	if c.Selector != "" {
		matchers = append(matchers, c.Selector)
	}
	if len(matchers) == 0 {
		return metric
	}
	return metric + "{" + strings.Join(matchers, ",") + "}"
}

func promDuration(d metav1.Duration) string { return model.Duration(d.Duration).String() }
