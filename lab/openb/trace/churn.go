package trace

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// addChurn adds pods drawn from a trace, which arrive and end in a steady state for a number of seconds. The cluster fills
// during fillTime. From then on, the running pods are expected to request the fraction fill of the capacity of all nodes at
// any time. This applies to the resource with the largest requested fraction.
//
// Pods keep their requests, workloads and run times. Later pods are drawn with equal probability. Pods that run
// when the cluster has filled are drawn with a probability in proportion to their run time, and a uniform fraction
// of it remains: a pod that runs for a day is drawn 1440 times as often as a pod that runs for a minute. A pod
// that does not end in the trace runs until the last event of the trace. addChurn returns an error if the pods
// request nothing, or if there would be more than maxPods.
func addChurn(in *recording.Input, pods []pod, o Options) error {
	lives, total := runTimes(pods)
	rate := o.rate(in.Nodes, pods, lives)
	if math.IsInf(rate, 1) || math.IsNaN(rate) {
		return fmt.Errorf("the pods of the trace request nothing that its nodes have")
	}
	first, later := math.Round(rate*total/float64(len(lives))), math.Round(rate*float64(o.Seconds))
	if first+later > maxPods {
		return fmt.Errorf("the fill %v for %d s takes %.0f pods: must be at most %d", o.Fill, o.Seconds, first+later, maxPods)
	}
	r := rand.New(rand.NewPCG(o.Seed, 0x636875726e))
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
		addCopy(in, pods[i].InputPod, arrival, float64(fillTime-arrival)+lives[i]*r.Float64())
	}
	for range int(later) {
		i := r.IntN(len(lives))
		addCopy(in, pods[i].InputPod, fillTime+r.Int64N(o.Seconds), lives[i])
	}
	slices.SortStableFunc(in.Pods, func(a, b recording.InputPod) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return nil
}

// runTimes returns the run time of each pod in seconds, and their sum.
func runTimes(pods []pod) (lives []float64, total float64) {
	last := int64(0)
	for i := range pods {
		last = max(last, pods[i].start)
		if pods[i].Duration != recording.Never {
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
func (o *Options) rate(nodes []recording.Node, pods []pod, lives []float64) float64 {
	var have resources.Amounts
	for i := range nodes {
		have = have.Add(recording.Amounts(nodes[i].Object.Status.Allocatable))
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
			rate = min(rate, o.Fill*float64(total)/amount)
		}
	}
	return rate
}

// addCopy adds a copy of a pod that arrives at a second and runs for a number of seconds.
func addCopy(in *recording.Input, p recording.InputPod, arrival int64, life float64) {
	object := *p.Object
	object.Name = fmt.Sprintf("%s-%d", object.Name, len(in.Pods))
	p.Object, p.Arrival, p.Duration = &object, arrival, int64(max(math.Round(life), 1))
	in.Pods = append(in.Pods, p)
}
