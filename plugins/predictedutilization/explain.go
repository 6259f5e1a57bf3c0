package predictedutilization

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
)

// units are the units of the resources for people.
var units = [predict.Resources]struct {
	name, unit string
	size       float64
}{predict.CPU: {"CPU", "cores", 1000}, predict.Memory: {"memory", "GiB", 1 << 30}}

// ExplainPod returns the expected use of the pod and the basis of this expectation, for example:
//
//	CPU 0.50 cores (0.50 of its request, as 12 pods of ReplicaSet web), memory 0.20 GiB (as pods without a request)
func (pl *plugin) ExplainPod(state fwk.CycleState, pod *v1.Pod) string {
	c := pl.Data(state, pod)
	declared := prediction.Declared(&c.pending.Pod)
	parts := make([]string, predict.Resources)
	for r := range parts {
		u := &units[r]
		request := declared.Amounts[r].Request
		estimate := c.model.Estimate(c.workload, r, request)
		parts[r] = fmt.Sprintf("%s %.2f %s (%s)", u.name, c.expected[r].Mean/u.size, u.unit, basis(&estimate, request, pod))
	}
	return strings.Join(parts, ", ")
}

// basis returns the basis of the expected use of a pod.
func basis(estimate *predict.Estimate, request float64, pod *v1.Pod) string {
	ratio := ""
	if request > 0 {
		ratio = fmt.Sprintf("%.2f of its request, ", estimate.Mean/request)
	}
	switch workload := resources.WorkloadOf(pod); {
	case estimate.Pods > 0:
		return fmt.Sprintf("%sas %s of %s %s", ratio, count(estimate.Pods), workload.Kind, workload.Name)
	case request > 0:
		return ratio + "as pods with a request"
	default:
		return "as pods without a request"
	}
}

// count returns a number of pods as text. Pods that ended have less weight with time.
func count(pods float64) string {
	if pods < 1.5 {
		return "1 pod"
	}
	return fmt.Sprintf("%.0f pods", pods)
}

// ExplainNode returns the terms of the score of a node with their weights, if there are several, and the predicted peak of CPU and
// memory of the node with the pod, for example:
//
//	utilization 53 x5; least-allocated 86 x1; balanced-allocation 68 x1; CPU 62 % of 4.00 cores:
//	1.80 on the node (0.20 by its measured load), 0.50 by the pod, 0.18 as deviation
func (pl *plugin) ExplainNode(state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) string {
	c := pl.Data(state, pod)
	use := pl.nodes.NodeValue(node, c.pending, c.model)
	share := use.Share(c.workload, c.bit)
	parts := pl.explainTerms(pl.terms(c, use), pl.countsUtilization(c))
	for r, allocated := range [predict.Resources]int64{use.allocatableCPU, use.allocatableMemory} {
		u, sum, allocatable := &units[r], &use.Sums[r], float64(allocated)
		if allocatable <= 0 {
			continue
		}
		peak := c.model.Peak(sum, share, &c.expected[r], r, pl.deviations)
		deviation := peak - sum.Mean - c.expected[r].Mean
		measured := ""
		if sum.Shift != 0 {
			measured = fmt.Sprintf(" (%+.2f by its measured load)", sum.Shift/u.size)
		}
		parts = append(parts, fmt.Sprintf("%s %.0f %% of %.2f %s: %.2f on the node%s, %.2f by the pod, %+.2f as deviation", u.name,
			100*peak/allocatable, allocatable/u.size, u.unit, sum.Mean/u.size, measured,
			c.expected[r].Mean/u.size, deviation/u.size))
	}
	return strings.Join(parts, "; ")
}

// explainTerms returns the terms that count with their weights, nothing for a single term.
func (pl *plugin) explainTerms(t terms, measured bool) (parts []string) {
	for i, value := range []float64{t.utilization, float64(t.least), float64(t.balanced)} {
		weight := [...]float64{pl.weights.utilization, pl.weights.least, pl.weights.balanced}[i]
		if weight > 0 && (i > 0 || measured) {
			parts = append(parts,
				fmt.Sprintf("%s %.0f x%.0f", [...]string{"utilization", "least-allocated", "balanced-allocation"}[i], value, weight))
		}
	}
	if len(parts) == 1 {
		return nil
	}
	return parts
}
