package recording

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// churn has the options of a steady state. A fill of 0 is no churn.
type churn struct {
	fill    float64
	seconds int64
}

// addChurn adds pods drawn from a trace, which arrive and end in a steady state for a number of seconds. The cluster fills
// during fillTime. From then on, the running pods are expected to request the fraction fill of the capacity of all nodes at
// any time. This applies to the resource with the largest requested fraction.
//
// Pods keep their requests, workloads and run times. Later pods are drawn with equal probability. Pods that run
// when the cluster has filled are drawn with a probability in proportion to their run time, and a uniform fraction
// of it remains: a pod that runs for a day is drawn 1440 times as often as a pod that runs for a minute. A pod
// that does not end in the trace runs until the last event of the trace. addChurn returns an error if the pods
// request nothing, or if there would be more than maxPods.
func (in *Input) addChurn(pods []openbPod, c churn, seed uint64) error {
	lives, total := runTimes(pods)
	rate := c.rate(in.Nodes, pods, lives)
	if math.IsInf(rate, 1) || math.IsNaN(rate) {
		return fmt.Errorf("the pods of the trace request nothing that its nodes have")
	}
	first, later := math.Round(rate*total/float64(len(lives))), math.Round(rate*float64(c.seconds))
	if first+later > maxPods {
		return fmt.Errorf("the fill %v for %d s takes %.0f pods: must be at most %d", c.fill, c.seconds, first+later, maxPods)
	}
	in.assume("%.0f pods arrive in the first %d s and %.0f in the following %d s, drawn from those of the trace with their run times, "+
		"so that from then on the expected fill is %v", first, fillTime, later, c.seconds, c.fill)
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
		arrival := r.Int64N(fillTime)
		in.addCopy(pods[i].InputPod, arrival, float64(fillTime-arrival)+lives[i]*r.Float64())
	}
	for range int(later) {
		i := r.IntN(len(lives))
		in.addCopy(pods[i].InputPod, fillTime+r.Int64N(c.seconds), lives[i])
	}
	sortByArrival(in.Pods)
	return nil
}

// runTimes returns the run time of each pod in seconds, and their sum.
func runTimes(pods []openbPod) (lives []float64, total float64) {
	last := int64(0)
	for i := range pods {
		last = max(last, pods[i].start)
		if pods[i].Duration != Never {
			last = max(last, pods[i].start+pods[i].Duration)
		}
	}
	lives = make([]float64, len(pods))
	for i := range pods {
		lives[i] = float64(max(min(pods[i].Duration, last-pods[i].start), 1))
		total += lives[i]
	}
	return lives, total
}

// rate returns the arrivals per second at which the expected fill is reached. If copies of a pod arrive with the
// rate, rate x life copies are expected to run at any time.
func (c churn) rate(nodes []Node, pods []openbPod, lives []float64) float64 {
	var have resources.Amounts
	for i := range nodes {
		have = have.Add(Amounts(nodes[i].Object.Status.Allocatable))
	}
	want := map[resources.Resource]float64{}
	for i := range pods {
		for resource, amount := range pods[i].Requests.All() {
			want[resource] += lives[i] / float64(len(pods)) * float64(amount)
		}
	}
	rate := math.Inf(1)
	for resource, amount := range want {
		if total := have.Get(resource); total > 0 && resource.Index() != resources.Pods {
			rate = min(rate, c.fill*float64(total)/amount)
		}
	}
	return rate
}

// addCopy adds a copy of a pod that arrives at a second and runs for a number of seconds.
func (in *Input) addCopy(p InputPod, arrival int64, life float64) {
	object := *p.Object
	object.Name = fmt.Sprintf("%s-%d", object.Name, len(in.Pods))
	p.Object, p.Arrival, p.Duration = &object, arrival, int64(max(math.Round(life), 1))
	in.Pods = append(in.Pods, p)
}
