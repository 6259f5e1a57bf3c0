package predict

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Past is the history of the usage of a workload's pods, present and past.
type Past struct {
	// Namespace, Kind and Name identify the workload.
	Namespace string    `json:"namespace"`
	Kind      string    `json:"kind"`
	Name      string    `json:"name"`
	CPU       PastUsage `json:"cpu,omitzero"`
	Memory    PastUsage `json:"memory,omitzero"`
}

// usage returns the usage of each resource.
func (p *Past) usage() [Resources]*PastUsage {
	return [Resources]*PastUsage{CPU: &p.CPU, Memory: &p.Memory}
}

// PastUsage is the usage of the pods of a workload of one resource, as multiples of their base: of their request or, without
// requests, in millicores or bytes.
type PastUsage struct {
	// Pods is the number of pods, with less weight for earlier pods, and Readings the number of their readings; 0 without a history.
	Pods     float64 `json:"pods,omitempty"`
	Readings float64 `json:"readings,omitempty"`
	// Mean is the mean of the means of the pods.
	Mean float64 `json:"mean,omitempty"`
	// Requested is set if the pods have a request.
	Requested bool `json:"requested,omitempty"`
}

// Export returns the histories of all workloads whose usage is known, in any order.
func (l *Learner) Export() []Past {
	known := make(map[*workloadState]*[Resources]past, len(l.workloads))
	for _, w := range l.workloads {
		copied := w.past
		known[w] = &copied
	}
	for _, state := range l.pods {
		for r := range state.own {
			known[state.workload][r].add(&state.own[r])
		}
	}
	exported := make([]Past, 0, len(known))
	for w, pasts := range known {
		workload, isKnown := w.key.Value(), false
		e := Past{Namespace: workload.Namespace, Kind: workload.Kind, Name: workload.Name}
		for r, p := range pasts {
			if p.pods > 0 {
				*e.usage()[r] = PastUsage{p.pods, p.readings, p.mean, p.class == requested}
				isKnown = true
			}
		}
		if isKnown {
			exported = append(exported, e)
		}
	}
	return exported
}

// Import adds the histories that another learner exported age seconds before, and returns the new model. Older histories have
// less weight. Existing histories are kept.
func (l *Learner) Import(exported []Past, age float64) *Model {
	decay := math.Exp2(-max(age, 0) / l.options.HalfLife)
	for i := range exported {
		e := &exported[i]
		w := l.workload(resources.Workload{Namespace: e.Namespace, Kind: e.Kind, Name: e.Name}.Key())
		for r, u := range e.usage() {
			if w.past[r].pods > 0 || !(u.Pods > 0 && u.Readings > 0 && u.Mean >= 0) {
				continue
			}
			class := int8(requested)
			if !u.Requested {
				class = unrequested
			}
			w.past[r] = past{pods: u.Pods * decay, readings: u.Readings * decay, mean: u.Mean, class: class}
		}
	}
	for r := range l.resources {
		l.estimateWorkloads(r)
	}
	return l.model()
}
