package fleet

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// podPromise is what a decision has promised to a workload: capacity for its replicas in a cluster.
type podPromise struct {
	Replicas int64 `json:"replicas"`
	// Waiting are the replicas that did not fit at the time of the decision, or exceeded the share of the namespace: no capacity is set
	// aside for them.
	Waiting int64 `json:"waiting,omitempty"`
	// Since is the Unix time in seconds of the decision, and Before the number of recent pods of the workload at that time.
	Since  int64 `json:"since"`
	Before int32 `json:"before,omitempty"`
}

const (
	// promiseTime is the time in seconds after which a promise ends although no summary shows its pods.
	promiseTime = 10 * 60
	// recentTime is the time in seconds for which summaries show pods as recent.
	recentTime = 15 * 60
)

// hasEnded reports whether the time of the promise is over, or has not begun because the clock was set back since.
func (p *podPromise) hasEnded(now int64) bool { return max(now-p.Since, p.Since-now) > promiseTime }

// podsShown returns how many pods of a template, beyond the ones before the promise, a summary shows.
func (p *podPromise) podsShown(summary *fit.Summary, template *fit.Template) int64 {
	return int64(max(summary.Recent(template.Workload)-p.Before, 0))
}

// RestorePromises sets the promises of a placement, which its PlacementDecisions have.
func (s *State) RestorePromises(key types.NamespacedName, promises map[string]podPromise) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.placements[key]; p != nil && p.workload != nil && len(p.workload.promises) == 0 {
		s.setPromises(p.workload, promises)
	}
}

// SetPromises sets the promises of a placement after a preview of its decision, so that later previews deduct them.
func (s *State) SetPromises(key types.NamespacedName, promises map[string]podPromise) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.placements[key]; p != nil && p.workload != nil {
		s.setPromises(p.workload, promises)
	}
}

// setPromises sets the promises of a placement, nil for none, in the placement and in the clusters. If they release capacity, EvaluateNext
// returns the placements whose workload did not fit.
func (s *State) setPromises(w *placementWorkload, promises map[string]podPromise) {
	released := false
	for cluster, promise := range w.promises {
		released = released || promises[cluster].Replicas < promise.Replicas
		if _, remains := promises[cluster]; !remains {
			e := s.entry(cluster)
			e.promised = slices.DeleteFunc(e.promised, func(other *placementWorkload) bool { return other == w })
			s.dropIfEmpty(cluster)
		}
	}
	for cluster := range promises {
		if _, known := w.promises[cluster]; !known {
			e := s.entry(cluster)
			e.promised = append(e.promised, w)
		}
	}
	w.promises = promises
	if !released {
		return
	}
	for key, p := range s.placements {
		if p.lacksRoom && p.workload != w {
			s.enqueue(key)
		}
	}
}

// unseenPromises returns the promised pods of other placements in the cluster that a summary of the cluster does not show, without promises
// that have ended. Without a summary it returns all.
func (c *candidate) unseenPromises(summary *fit.Summary) (parts []fit.Part) {
	for _, to := range c.promised {
		promise := to.promises[c.name]
		if to == c.placementWorkload || to.workload == nil || summary != nil && promise.hasEnded(c.now) {
			continue
		}
		for _, part := range to.workload.Parts {
			pods := resources.Multiply(part.Pods, promise.Replicas)
			if summary != nil {
				pods = resources.Multiply(part.Pods, promise.Replicas-promise.Waiting)
			}
			if summary != nil && summary.ObservedAt > promise.Since {
				pods -= promise.podsShown(summary, part.Template)
			}
			if pods > 0 {
				parts = append(parts, fit.Part{Template: part.Template, Pods: pods})
			}
		}
	}
	return parts
}

// runningOf returns how many replicas of the promise to a workload the summary shows; all when its time is over.
func (c *candidate) runningOf(to *placementWorkload) int64 {
	promise := to.promises[c.name]
	if promise.hasEnded(c.now) {
		return promise.Replicas - promise.Waiting
	}
	part := &to.workload.Parts[0]
	return min(promise.podsShown(c.summary, part.Template)/part.Pods, promise.Replicas)
}

// running returns how many replicas of the placement's own promise run in the cluster, which has a summary.
func (c *candidate) running() int64 {
	if _, known := c.promises[c.name]; !known {
		return 0
	}
	return c.runningOf(c.placementWorkload)
}

// runningThatExclude returns how many replicas of the workload are known to run in the cluster, 0 if they exclude no further ones: the
// recent ones, or the ones that were promised to placements of the workload.
func (c *candidate) runningThatExclude() (replicas int64) {
	if c.summary == nil || !c.workload.ExcludesItself() {
		return 0
	}
	for _, part := range c.workload.Parts {
		replicas = max(replicas, resources.DivUp(int64(c.summary.Recent(part.Workload)), part.Pods))
	}
	name := c.workload.Parts[0].Workload
	for _, to := range c.promised {
		isSame := to.workload != nil && name.Name != "" && to.workload.Parts[0].Workload == name
		if isSame || to == c.placementWorkload {
			replicas = max(replicas, c.runningOf(to))
		}
	}
	return replicas
}

// promisesTo returns the promises of a decision by selected cluster. Clusters whose replicas do not change keep their promise.
func (d *workloadDecision) promisesTo(fleet []*decide.Cluster, chosen []int32, fits []fit.Fit) map[string]podPromise {
	next, shares := make(map[string]podPromise, len(chosen)), d.shares(fleet, chosen, fits)
	for k, i := range chosen {
		c := d.candidateFor(fleet[i].Name)
		promise, known := d.promises[c.name]
		if !known || promise.Replicas != shares[k] {
			promise = podPromise{Replicas: shares[k], Since: d.now}
			if c.summary != nil {
				promise.Waiting = shares[k] - c.setAside(shares[k], fits[i].ScaledUp)
			}
			for _, part := range d.workload.Parts { // if they differ, pods are deducted longer rather than too short
				if c.summary != nil {
					promise.Before = max(promise.Before, c.summary.Recent(part.Workload))
				}
			}
		}
		next[c.name] = promise
	}
	return next
}

// shares returns the replicas of each selected cluster. If their number rises in a selected cluster, the limit of the cluster bounds it.
// Divided replicas are divided again only if their number or the selected clusters have changed.
func (d *workloadDecision) shares(fleet []*decide.Cluster, chosen []int32, fits []fit.Fit) []int64 {
	shares, fitting, left := make([]int64, len(chosen)), make([]int64, len(chosen)), make([]int64, len(chosen))
	sum, isSame := int64(0), len(chosen) == len(d.promises)
	for k, i := range chosen {
		promise, known := d.promises[fleet[i].Name]
		shares[k], isSame = promise.Replicas, isSame && known
		sum += promise.Replicas
		fitting[k], left[k] = max(fits[i].ScaledUp, 0), d.candidateFor(fleet[i].Name).left
	}
	switch {
	case !d.spec.Divide:
		for k := range shares {
			shares[k] = min(d.workload.Replicas, max(left[k], shares[k]))
		}
		return shares
	case isSame && sum == d.workload.Replicas:
		return shares
	}
	return divide(d.workload.Replicas, fitting, left)
}

// divide divides replicas over clusters: equal shares, but none above the number that fits a cluster while more fit another one.
// Replicas that fit nowhere are divided up to the numbers that the limits of the clusters leave, and the rest is in no share.
func divide(replicas int64, fits, left []int64) []int64 {
	shares := make([]int64, len(fits))
	fillShares(shares, fillShares(shares, replicas, fits), left)
	return shares
}

// fillShares adds replicas to shares in equal parts up to bounds, and returns the rest. Shares with the highest bounds get the remainder.
func fillShares(shares []int64, replicas int64, bounds []int64) int64 {
	room := make([]int64, len(shares))
	for i := range shares {
		room[i] = max(bounds[i]-shares[i], 0)
	}
	order := decide.Indexes(len(shares))
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(room[a], room[b]) })
	for k, i := range order {
		part := min(room[i], replicas/int64(len(order)-k))
		shares[i], replicas = shares[i]+part, replicas-part
	}
	return replicas
}

// setReplicas sets annotation v1beta1.AnnotationReplicas of a PlacementDecision to the promises in its clusters, and removes it if there
// are none.
func (r *Result) setReplicas(decision *clusterv1beta1.PlacementDecision) {
	promises := map[string]podPromise{}
	for _, d := range decision.Status.Decisions {
		if promise, known := r.Promises[d.ClusterName]; known {
			promises[d.ClusterName] = promise
		}
	}
	decision.Annotations = maps.Clone(decision.Annotations) // an existing PlacementDecision has the same map
	if len(promises) == 0 {
		delete(decision.Annotations, v1beta1.AnnotationReplicas)
		return
	}
	text, _ := json.Marshal(promises) // of strings and numbers
	metav1.SetMetaDataAnnotation(&decision.ObjectMeta, v1beta1.AnnotationReplicas, string(text))
}
