package capacity

import (
	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Within returns the number of replicas of the workload that amounts leave after placed pods, by the requests of pods. Resources without
// an amount do not limit it.
func (w *Workload) Within(amounts v1.ResourceList, placed []Part) int64 {
	replicas := int64(MaxReplicas)
	for name, quantity := range amounts {
		r := resources.NewResource(name)
		if each := requestsOf(w.Parts, r); each > 0 {
			replicas = min(replicas, max(r.Amount(quantity)-requestsOf(placed, r), 0)/each)
		}
	}
	return replicas
}

// requestsOf returns the sum of the requests of pods for a resource.
func requestsOf(parts []Part, r resources.Resource) (sum int64) {
	for i := range parts {
		for j := range parts[i].requests {
			if request := &parts[i].requests[j]; request.Resource == r {
				sum = resources.Add(sum, resources.Multiply(parts[i].Pods, request.amount))
			}
		}
	}
	return sum
}
