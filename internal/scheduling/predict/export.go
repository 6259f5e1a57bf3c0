package predict

import "github.com/plimsoll-k8s/plimsoll/internal/resources"

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

// PastUsage is the usage of the pods of a workload of one resource.
type PastUsage struct {
	// Pods is the number of pods, with less weight for earlier pods; 0 without a history. Seconds is the mean length of their
	// histories.
	Pods    float64 `json:"pods,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	// Mean is the mean of the means of the pods, in millicores or bytes. Request is the mean of their requests, 0 without any.
	Mean    float64 `json:"mean,omitempty"`
	Request float64 `json:"request,omitempty"`
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
			known[state.workload][r].add(&state.own[r], state.base[r], l.counted(state))
		}
	}
	exported := make([]Past, 0, len(known))
	for w, pasts := range known {
		workload, isKnown := w.key.Value(), false
		e := Past{Namespace: workload.Namespace, Kind: workload.Kind, Name: workload.Name}
		for r, p := range pasts {
			if p.pods > 0 {
				*e.usage()[r] = PastUsage{Pods: p.pods, Seconds: p.seconds, Mean: p.mean, Request: p.base}
				isKnown = true
			}
		}
		if isKnown {
			exported = append(exported, e)
		}
	}
	return exported
}

// Import adds the histories that another learner exported at the second saved, and returns the new model. now is the present
// second. Older histories have less weight. Existing histories are kept. Pods that were created before saved are in the
// histories, and count again only as far as the histories have decayed.
func (l *Learner) Import(exported []Past, saved, now float64) *Model {
	l.last, l.saved = max(l.last, now), saved
	decay := l.decaySince(saved)
	for i := range exported {
		e := &exported[i]
		w := l.workload(resources.Workload{Namespace: e.Namespace, Kind: e.Kind, Name: e.Name}.Key())
		for r, u := range e.usage() {
			if w.past[r].pods > 0 || !(u.Pods > 0 && u.Seconds > 0 && isAmount(u.Mean) && isAmount(u.Request)) {
				continue
			}
			w.past[r] = past{pods: u.Pods * decay, seconds: u.Seconds, mean: u.Mean, base: u.Request}
			w.request[r] = max(w.request[r], u.Request)
		}
	}
	for r := range l.resources {
		l.estimateWorkloads(r)
	}
	return l.model()
}
