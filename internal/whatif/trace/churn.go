package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// FillTime is the time in seconds during which a cluster fills before its pods arrive and end in a steady state: so long
// that a scheduler can have learned from the first pods when it places the last ones, as in a cluster that has been used before.
const FillTime = 3600

// Churn returns a cluster with the same nodes, on which pods like those of this one arrive and end in a steady state
// for a number of seconds. The cluster fills during FillTime. From then on the expected requests of the pods that run are the
// fraction fill of the capacity of all nodes at any time, of the resource of which they request the largest fraction.
//
// Pods keep their requests, groups and run times. Pods that arrive are drawn with equal probability, those that
// run when the cluster has filled with a probability in proportion to their run time, of which a uniform fraction
// remains: a pod that runs for a day is there 1440 times as often as one that runs for a minute. The run time of a
// pod that does not end in the trace is until the last event of the trace. It returns an error if the pods request
// nothing, or if there would be more than MaxPods.
func (c *Cluster) Churn(fill float64, seconds int64, seed uint64) (*Cluster, error) {
	lives, total := c.runTimes()
	rate := c.rate(fill, lives)
	if math.IsInf(rate, 1) || math.IsNaN(rate) {
		return nil, fmt.Errorf("the pods of the trace request nothing that its nodes have")
	}
	first, later := math.Round(rate*total/float64(len(lives))), math.Round(rate*float64(seconds))
	if first+later > MaxPods {
		return nil, fmt.Errorf("the fill %v for %d s takes %.0f pods: must be at most %d", fill, seconds, first+later, MaxPods)
	}
	out := &Cluster{Nodes: c.Nodes, Pods: make([]Pod, 0, int(first+later))}
	out.Assumed = append(append(out.Assumed, c.Assumed...), fmt.Sprintf(
		"%.0f pods arrive in the first %d s and %.0f in the following %d s, drawn from those of the trace with their run times, "+
			"so that from then on the expected fill is %v", first, FillTime, later, seconds, fill))
	r := rand.New(rand.NewPCG(seed, 0x636875726e))
	cumulative := make([]float64, len(lives))
	sum := 0.0
	for i, life := range lives {
		sum += life
		cumulative[i] = sum
	}
	for range int(first) {
		found, _ := slices.BinarySearch(cumulative, r.Float64()*total)
		i := min(found, len(lives)-1)
		arrival := r.Int64N(FillTime)
		out.add(c.Pods[i], arrival, float64(FillTime-arrival)+lives[i]*r.Float64())
	}
	for range int(later) {
		i := r.IntN(len(lives))
		out.add(c.Pods[i], FillTime+r.Int64N(seconds), lives[i])
	}
	out.Sort()
	return out, nil
}

// runTimes returns the run time of each pod in seconds, and their sum.
func (c *Cluster) runTimes() (lives []float64, total float64) {
	last := int64(0)
	for i := range c.Pods {
		last = max(last, c.Pods[i].Start)
		if c.Pods[i].End != Never {
			last = max(last, c.Pods[i].End)
		}
	}
	lives = make([]float64, len(c.Pods))
	for i := range c.Pods {
		runs := c.Pods[i].Runs()
		if runs == Never {
			runs = last - c.Pods[i].Start
		}
		lives[i] = float64(max(runs, 1))
		total += lives[i]
	}
	return lives, total
}

// rate returns the arrivals per second at which the expected fill is reached. An expected number of rate x life pods
// like a pod that arrives with the rate is there at any time.
func (c *Cluster) rate(fill float64, lives []float64) float64 {
	var have, want [3]float64
	for i := range c.Nodes {
		addAmounts(&have, c.Nodes[i].Capacity, 1)
	}
	for i := range c.Pods {
		addAmounts(&want, c.Pods[i].Request, lives[i]/float64(len(c.Pods)))
	}
	rate := math.Inf(1)
	for i := range have {
		if have[i] > 0 && want[i] > 0 {
			rate = min(rate, fill*have[i]/want[i])
		}
	}
	return rate
}

// addAmounts adds a multiple of amounts to sums.
func addAmounts(sums *[3]float64, a Amounts, times float64) {
	for i, amount := range [3]int64{a.CPU, a.Memory, a.GPU} {
		sums[i] += times * float64(amount)
	}
}

// add adds a copy of a pod that arrives at a second and runs for a number of seconds.
func (c *Cluster) add(p Pod, arrival int64, life float64) {
	p.Name = fmt.Sprintf("%s-%d", p.Name, len(c.Pods))
	p.Node = ""
	p.Arrival, p.Start = arrival, arrival
	p.End = arrival + int64(max(math.Round(life), 1))
	c.Pods = append(c.Pods, p)
}
