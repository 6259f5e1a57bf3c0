package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
)

// outcome has the predictions of one predictor for one resource of a set, each divided by the peak that came.
type outcome struct {
	set, resource, name string
	// ratios are the predictions divided by the peaks; predicted and peaks are the sums of both.
	ratios           []float64
	predicted, peaks float64
}

// result is what a predictor missed.
type result struct {
	// missed is the share of predictions below the peak, severity the mean missing part of the peak over all predictions, and ratio
	// the sum of the predictions over the sum of the peaks.
	missed, severity, ratio float64
}

// scaledBy returns the result of predictions that are multiplied by a factor.
func (o *outcome) scaledBy(factor float64) (r result) {
	for _, ratio := range o.ratios {
		ratio *= factor
		if ratio < 1 {
			r.missed++
			r.severity += 1 - ratio
		}
	}
	n := float64(len(o.ratios))
	return result{r.missed / n, r.severity / n, factor * o.predicted / o.peaks}
}

// scaledTo returns the result of predictions that are scaled to a mean ratio.
func (o *outcome) scaledTo(ratio float64) result { return o.scaledBy(ratio / o.scaledBy(1).ratio) }

// ours are the model of this project: the mean of each hour and k deviations, as the profile predicted uses it.
const ours = "Plimsoll, mean of each hour and %g deviations"

var deviations = []float64{config.DefaultDeviations, 3}

// evaluate predicts all nodes of a set.
func evaluate(set string, pool []machine, first int) []outcome {
	steps := len(pool[0].usage[0])
	byName := map[string]*outcome{}
	var order []*outcome
	add := func(resource, name string, predicted, peak float64) {
		o := byName[resource+name]
		if o == nil {
			o = &outcome{set: set, resource: resource, name: name}
			byName[resource+name], order = o, append(order, o)
		}
		o.ratios = append(o.ratios, predicted/peak)
		o.predicted, o.peaks = o.predicted+predicted, o.peaks+peak
	}
	for _, machines := range draws(pool) {
		cluster := newCluster(machines)
		for at := 1; at+perDay <= steps; at++ {
			cluster.observe(at)
			if at < first || at%perHour != 0 {
				continue
			}
			for r, resource := range [...]string{"CPU", "memory"} {
				for i := range cluster.nodes {
					n := &cluster.nodes[i][r]
					if n.total == nil {
						continue
					}
					peak := slices.Max(n.total[at : at+perDay])
					for _, p := range others {
						if predicted := p.predict(n, at); predicted > 0 {
							add(resource, p.name, predicted, peak)
						}
					}
					for name, predicted := range cluster.predict(i, r) {
						add(resource, name, predicted, peak)
					}
				}
			}
		}
	}
	outcomes := make([]outcome, len(order))
	for i, o := range order {
		outcomes[i] = *o
	}
	return outcomes
}

// cluster is the nodes of a draw, of which one learner reads the usage.
type cluster struct {
	nodes   [][2]node
	learner *predict.Learner
	model   *predict.Model
	reading predict.Reading
}

func newCluster(machines []machine) *cluster {
	c := &cluster{learner: predict.NewLearner(predict.Options{HistoryWeight: 1, HalfLife: predict.DefaultHalfLife})}
	c.reading.Window = 24 * 3600 / perDay
	for i := range len(machines) / machinesPerNode {
		c.nodes = append(c.nodes, [2]node{})
		reading := predict.NodeReading{Name: fmt.Sprint(i), Pods: make([]predict.PodReading, machinesPerNode)}
		for j, m := range machines[i*machinesPerNode : (i+1)*machinesPerNode] {
			reading.Pods[j] = predict.PodReading{State: &predict.PodState{}, Seen: 1, IsUsed: true}
			reading.Pods[j].Workload = resources.Workload{Name: m.workload}.Key()
			for r := range c.nodes[i] {
				c.nodes[i][r].add(m.usage[r], m.provisioned[r], r == predict.Memory)
				reading.Pods[j].Amounts[r].Request = m.provisioned[r]
			}
		}
		c.reading.Nodes = append(c.reading.Nodes, reading)
	}
	return c
}

// add adds a machine.
func (n *node) add(series []float64, provisioned float64, memory bool) {
	if series == nil {
		return
	}
	n.memory = memory
	n.machines = append(n.machines, series)
	n.provisioned += provisioned
	if n.total == nil {
		n.total = make([]float64, len(series))
	}
	for i, v := range series {
		n.total[i] += v
	}
}

// observe has the learner read the step before at.
func (c *cluster) observe(at int) {
	c.reading.Second = float64(at) * c.reading.Window
	for i := range c.reading.Nodes {
		reading := &c.reading.Nodes[i]
		for r := range c.nodes[i] {
			n := &c.nodes[i][r]
			reading.Measured[r] = predict.Measured{}
			if n.total == nil {
				continue
			}
			reading.Measured[r] = predict.Measured{Mean: n.total[at-1], Known: true}
			for j := range reading.Pods {
				reading.Pods[j].Used[r] = n.machines[j][at-1]
			}
		}
	}
	c.model = c.learner.Observe(&c.reading)
}

// predict returns the predictions of the model for a resource of a node.
func (c *cluster) predict(i, r int) map[string]float64 {
	reading := &c.reading.Nodes[i]
	pods := make([]predict.Declared, len(reading.Pods))
	for j := range pods {
		pods[j] = reading.Pods[j].Declared
	}
	use := c.model.Node(reading.Name, pods)
	predicted := map[string]float64{}
	for _, k := range deviations {
		peak := c.model.Peak(&use.Sums[r], nil, &predict.Expected{Limit: math.Inf(1)}, r, k)
		predicted[fmt.Sprintf(ours, k)] = peak
	}
	return predicted
}

// tableOf returns the tables of the resources of all sets.
func tableOf(outcomes []outcome) string {
	var out strings.Builder
	for i := range outcomes {
		o := &outcomes[i]
		if i == 0 || outcomes[i-1].set != o.set || outcomes[i-1].resource != o.resource {
			fmt.Fprintf(&out, "\n%s, %s, %d predictions:\n\n", o.set, o.resource, len(o.ratios))
			out.WriteString("| predictor | missed | severity | ratio | missed at 1.5 | severity at 1.5 | missed at 2 | severity at 2 |\n")
			out.WriteString("|---|---:|---:|---:|---:|---:|---:|---:|\n")
		}
		as, low, high := o.scaledBy(1), o.scaledTo(1.5), o.scaledTo(2)
		fmt.Fprintf(&out, "| %s | %.1f %% | %.3f | %.2f | %.1f %% | %.3f | %.1f %% | %.3f |\n",
			o.name, 100*as.missed, as.severity, as.ratio, 100*low.missed, low.severity, 100*high.missed, high.severity)
	}
	return strings.TrimPrefix(out.String(), "\n")
}

// monthTable returns one table of the sets with a month of history: what is missed at the same ratio.
func monthTable(outcomes []outcome) string {
	var out strings.Builder
	columns, rows, order := "", map[string]string{}, []string{}
	for i := range outcomes {
		o := &outcomes[i]
		if historyDays[o.set] < 28 {
			continue
		}
		if column := fmt.Sprintf(" %s at 1.5 | at 2 |", o.resource); !strings.HasSuffix(columns, column) {
			columns += column
		}
		if rows[o.name] == "" {
			order = append(order, o.name)
		}
		rows[o.name] += fmt.Sprintf(" %.1f | %.1f |", 100*o.scaledTo(1.5).missed, 100*o.scaledTo(2).missed)
	}
	fmt.Fprintf(&out, "| peaks missed, percent |%s\n|---|%s\n", columns, strings.Repeat("---:|", strings.Count(columns, "|")))
	for _, name := range order {
		fmt.Fprintf(&out, "| %s |%s\n", name, rows[name])
	}
	return out.String()
}
