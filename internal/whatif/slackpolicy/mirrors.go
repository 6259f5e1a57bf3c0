package slackpolicy

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// mirrorNeed is the need of the arriving pods of one workload.
type mirrorNeed struct {
	// requests are the largest of each resource of the pods.
	requests resources.Amounts
	// arrivals are the seconds at which the pods arrive, and counts the numbers of placeholders with which each has a node at once:
	// the pods since first, for which nodes are not ready yet.
	arrivals, counts []int64
	first            int
}

// add adds the next pod of the workload. Nodes for pods before a second are ready when it arrives.
func (n *mirrorNeed) add(p *Pod, since int64) {
	n.requests, n.arrivals = n.requests.Max(withoutSlots(p.Requests)), append(n.arrivals, p.Arrival)
	for n.arrivals[n.first] < since {
		n.first++
	}
	n.counts = append(n.counts, int64(len(n.arrivals)-n.first))
}

// best returns the number of placeholders at which the sum of their price and of a price for each pod that waits is lowest.
func (n *mirrorNeed) best(price, wait float64) (count int64) {
	counts := slices.Sorted(slices.Values(n.counts))
	lowest := wait * float64(len(counts))
	for i, c := range counts { // c placeholders avoid the waits of i+1 pods
		if sum := price*float64(c) + wait*float64(len(counts)-i-1); sum < lowest {
			lowest, count = sum, c
		}
	}
	return count
}

// searchMirrors simulates mirrors of the workloads with pods that wait without slack, beside a minimum of a number of units. A
// weight is the price of a pod that waits, in node-hours: each workload has the number of placeholders at which one more
// costs more than the waits that it avoids.
func (s *search) searchMirrors(none *Candidate, units float64) {
	s.bisect(1e-4, 1e4, 10, geometricMean, func(weight float64) Candidate {
		policy, name := s.policy("0%"), ""
		if units > 0 {
			policy.Spec.Minimum = s.amount(units)
			name = " beside minimum " + amountText(policy.Spec.Minimum)
		} else {
			policy.Spec.CoverBiggestPod = new(false)
		}
		policy.Spec.Mirrors.NamespaceSelector = &metav1.LabelSelector{} // all
		namespaces := metav1.LabelSelectorRequirement{Key: v1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn}
		var mirrors []slack.Workload
		placeholders := int64(0)
		for _, group := range slack.MirrorGroups(policy, s.workloads(none, weight), 0) { // in the order of namespaces
			w := *group.Mirror
			w.Slack = fmt.Sprint(group.Count)
			mirrors, namespaces.Values = append(mirrors, w), append(namespaces.Values, w.Namespace)
			placeholders += group.Count
		}
		namespaces.Values = slices.Compact(namespaces.Values)
		policy.Spec.Mirrors.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{namespaces}
		if len(mirrors) == 0 {
			return Candidate{}
		}
		return s.try(format.Of(placeholders, "mirror")+" of "+format.Of(len(mirrors), "workload")+name, policy, mirrors...)
	})
}

// workloads returns the workloads with pods that wait without slack, and the numbers of placeholders that they request at a weight.
func (s *search) workloads(none *Candidate, weight float64) (workloads []slack.Workload) {
	for i, w := range s.history.Workloads {
		n, waited := &s.mirrors[i+1], float64(none.Waited[int32(i+1)])
		if waited == 0 {
			continue
		}
		price := n.requests.MaxFraction(s.node.size()) * float64(s.history.Seconds) / 3600
		count := n.best(price, weight*waited/float64(len(n.counts)))
		template := v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{
			{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
				v1.ResourceCPU:    *resource.NewMilliQuantity(n.requests.CPU, resource.DecimalSI),
				v1.ResourceMemory: *resource.NewQuantity(n.requests.Memory, resource.BinarySI),
			}}},
		}}}
		w.Slack, w.Template = fmt.Sprint(min(count, 9999)), template // the highest number is 9999
		workloads = append(workloads, w)
	}
	return workloads
}
