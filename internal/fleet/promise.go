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
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/capacity"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Promise is what a decision has promised to a workload: capacity for its replicas in a cluster.
type Promise struct {
	Replicas int64 `json:"replicas"`
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
func (p *Promise) hasEnded(now int64) bool { return max(now-p.Since, p.Since-now) > promiseTime }

// seen returns how many pods of a template, beyond the ones before the promise, a summary shows.
func (p *Promise) seen(summary *capacity.Summary, template *capacity.Template) int64 {
	return int64(max(summary.Recent(template.Workload)-p.Before, 0))
}

// RestorePromises sets the promises of a placement, which its PlacementDecisions have.
func (s *State) RestorePromises(key types.NamespacedName, promises map[string]Promise) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.placements[key]; p != nil && p.workload != nil && len(p.workload.promises) == 0 {
		s.setPromises(p.workload, promises)
	}
}

// promised is a promise in a cluster to the workload of a placement.
type promised struct {
	Promise

	to *placementWorkload
}

// setPromises sets the promises of a placement, nil for none, in the placement and in the clusters.
func (s *State) setPromises(w *placementWorkload, promises map[string]Promise) {
	if maps.Equal(w.promises, promises) {
		return
	}
	toW := func(p promised) bool { return p.to == w }
	for cluster := range w.promises {
		if _, remains := promises[cluster]; !remains {
			e := s.entry(cluster)
			e.promises = slices.DeleteFunc(e.promises, toW)
			s.dropIfEmpty(cluster)
		}
	}
	for cluster, promise := range promises {
		e := s.entry(cluster)
		if i := slices.IndexFunc(e.promises, toW); i >= 0 {
			e.promises[i].Promise = promise
		} else {
			e.promises = append(e.promises, promised{promise, w})
		}
	}
	w.promises = promises
}

// others returns the promised pods of other placements in the cluster that a summary of the cluster does not show, without promises that
// have ended. Without a summary it returns all.
func (c *candidate) others(summary *capacity.Summary) (parts []capacity.Part) {
	for i := range c.entry.promises {
		promise := &c.entry.promises[i]
		if promise.to == c.placementWorkload || promise.to.workload == nil || summary != nil && promise.hasEnded(c.now) {
			continue
		}
		for _, part := range promise.to.workload.Parts {
			pods := resources.Multiply(part.Pods, promise.Replicas)
			if summary != nil && summary.ObservedAt > promise.Since {
				pods -= promise.seen(summary, part.Template)
			}
			if pods > 0 {
				parts = append(parts, capacity.Part{Template: part.Template, Pods: pods})
			}
		}
	}
	return parts
}

// runningOf returns how many replicas of a promise the summary shows; all when its time is over.
func (c *candidate) runningOf(p *promised) int64 {
	if p.hasEnded(c.now) {
		return p.Replicas
	}
	part := &p.to.workload.Parts[0]
	return min(p.seen(c.summary, part.Template)/part.Pods, p.Replicas)
}

// running returns how many replicas of the placement's own promise run in the cluster, which has a summary.
func (c *candidate) running() int64 {
	for i := range c.entry.promises { // most clusters have none
		if promise := &c.entry.promises[i]; promise.to == c.placementWorkload {
			return c.runningOf(promise)
		}
	}
	return 0
}

// excluding returns how many replicas of the workload are known to run in the cluster, 0 if they exclude no further ones: the recent
// ones, or the ones that were promised to placements of the workload.
func (c *candidate) excluding() (replicas int64) {
	if c.summary == nil || !c.workload.ExcludesItself() {
		return 0
	}
	for _, part := range c.workload.Parts {
		replicas = max(replicas, resources.DivUp(int64(c.summary.Recent(part.Workload)), part.Pods))
	}
	name := c.workload.Parts[0].Workload
	for i := range c.entry.promises {
		promise := &c.entry.promises[i]
		isSame := promise.to.workload != nil && name.Name != "" && promise.to.workload.Parts[0].Workload == name
		if isSame || promise.to == c.placementWorkload {
			replicas = max(replicas, c.runningOf(promise))
		}
	}
	return replicas
}

// promise returns the promises of a decision by selected cluster. Clusters whose replicas do not change keep their promise.
func (f *fitting) promise(fleet []*Cluster, chosen []int32, fits []capacity.Fit) map[string]Promise {
	next, shares := make(map[string]Promise, len(chosen)), f.shares(fleet, chosen, fits)
	for k, i := range chosen {
		c := f.in(fleet[i])
		promise, known := f.promises[c.Name]
		if !known || promise.Replicas != shares[k] {
			promise = Promise{Replicas: shares[k], Since: f.now}
			for _, part := range f.workload.Parts { // if they differ, pods are deducted longer rather than too short
				if c.summary != nil {
					promise.Before = max(promise.Before, c.summary.Recent(part.Workload))
				}
			}
		}
		next[c.Name] = promise
	}
	return next
}

// shares returns the replicas of each selected cluster. If their number rises in a selected cluster, the limit of the cluster bounds it.
// Divided replicas are divided again only if their number or the selected clusters have changed.
func (f *fitting) shares(fleet []*Cluster, chosen []int32, fits []capacity.Fit) []int64 {
	shares, fitting, left := make([]int64, len(chosen)), make([]int64, len(chosen)), make([]int64, len(chosen))
	sum, isSame := int64(0), len(chosen) == len(f.promises)
	for k, i := range chosen {
		promise, known := f.promises[fleet[i].Name]
		shares[k], isSame = promise.Replicas, isSame && known
		sum += promise.Replicas
		fitting[k], left[k] = max(fits[i].ScaledUp, 0), f.in(fleet[i]).left
	}
	switch {
	case !f.spec.Divide:
		for k := range shares {
			shares[k] = min(f.replicas, max(left[k], shares[k]))
		}
		return shares
	case isSame && sum == f.replicas:
		return shares
	}
	return divide(f.replicas, fitting, left)
}

// divide divides replicas over clusters: equal shares, but none above the number that fits a cluster while more fit another one.
// Replicas that fit nowhere are divided up to the numbers that the limits of the clusters leave, and the rest is in no share.
func divide(replicas int64, fits, left []int64) []int64 {
	shares := make([]int64, len(fits))
	fill(shares, fill(shares, replicas, fits), left)
	return shares
}

// fill adds replicas to shares in equal parts up to bounds, and returns the rest. Shares with the highest bounds get the remainder.
func fill(shares []int64, replicas int64, bounds []int64) int64 {
	room := make([]int64, len(shares))
	for i := range shares {
		room[i] = max(bounds[i]-shares[i], 0)
	}
	order := Indexes(len(shares))
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
	of := map[string]Promise{}
	for _, d := range decision.Status.Decisions {
		if promise, known := r.Promises[d.ClusterName]; known {
			of[d.ClusterName] = promise
		}
	}
	decision.Annotations = maps.Clone(decision.Annotations) // an existing PlacementDecision has the same map
	if len(of) == 0 {
		delete(decision.Annotations, v1beta1.AnnotationReplicas)
		return
	}
	text, _ := json.Marshal(of) // of strings and numbers
	metav1.SetMetaDataAnnotation(&decision.ObjectMeta, v1beta1.AnnotationReplicas, string(text))
}
