package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// workloadDecision is the workload of a placement in one decision. Methods must be called with the lock of the state held.
type workloadDecision struct {
	*placementWorkload

	state *State
	now   int64
	// perCluster is the number of replicas that each selected cluster is to have at least, and needed the number below which a cluster is
	// unfit.
	perCluster, needed int64
}

// workloadDecisionFor returns the workload of a placement in a decision, nil if it names none.
func (s *State) workloadDecisionFor(p *placementState, now int64) *workloadDecision {
	if p.workload == nil || p.workload.workload == nil {
		return nil
	}
	replicas := p.workload.workload.Replicas
	return &workloadDecision{p.workload, s, now, replicas, replicas}
}

// candidate is a cluster for the workload of a placement in one decision.
type candidate struct {
	*workloadDecision
	*entry

	name string
	// summary is the summary of the cluster, nil if it has no valid one.
	summary *fit.Summary
	// share of whole parts of the limit and of the free capacity are what the placements of the namespace may have.
	share, whole int64
	// left is the number of replicas that the limit of the cluster leaves beside other placements. shareLimits is set if it would be higher
	// without the share.
	left        int64
	shareLimits bool
}

// FitOf returns the fit of a workload in a cluster beside the workloads of all placements and its own pods, and in words what limits it.
// Amounts are negative without a valid ClusterCapacity.
func (s *State) FitOf(w *fit.Workload, cluster string, now time.Time) (fit.Fit, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &placementState{workload: &placementWorkload{workload: w, fits: map[*fit.Summary]cachedFit{}}}
	c := s.workloadDecisionFor(p, now.Unix()).candidateFor(cluster)
	return c.fitWithPromise(c.runningThatExclude()), c.describeLimit()
}

// addFits adds the fits to a request with its members, and sets the replicas of each cluster.
func (d *workloadDecision) addFits(r *decide.Request) {
	if replicas := d.workload.Replicas; d.spec.Divide {
		clusters := min(max(r.Number, 1), int64(max(len(r.Members), 1)))
		d.perCluster, d.needed = resources.DivUp(replicas, clusters), min(replicas, 1)
	}
	r.Replicas, r.Fits, r.Unfit = d.perCluster, make([]fit.Fit, len(r.Fleet)), make([]bool, len(r.Fleet))
	for _, i := range r.Members {
		c := d.candidateFor(r.Fleet[i].Name)
		r.Fits[i] = c.fitWithPromise(c.runningThatExclude())
		r.Unfit[i] = c.left < d.needed || d.spec.RequireFit && r.Fits[i].ScaledUp < d.needed
	}
}

// candidateFor returns a cluster as a candidate.
func (d *workloadDecision) candidateFor(cluster string) *candidate {
	c := &candidate{
		workloadDecision: d, entry: cmp.Or(d.state.entries[cluster], &entry{}), name: cluster, share: 1, whole: d.state.sharersOf(cluster),
		left: fit.MaxReplicas,
	}
	c.summary, _ = c.capacity.currentSummary(d.now)
	if c.whole > 1 && c.limit != nil && c.limit.share > 0 {
		c.share, c.whole = c.limit.share, 100
	}
	switch {
	case c.limit == nil:
	case c.limit.err != nil:
		c.left = 0
	default:
		promised := c.unseenPromises(nil)
		c.left = c.workload.CountWithin(c.limit.amounts, 1, 1, promised)
		if c.share < c.whole {
			ofShare := c.workload.CountWithin(c.limit.amounts, c.share, c.whole, c.ofNamespace(promised))
			c.left, c.shareLimits = min(c.left, ofShare), ofShare < c.left
		}
	}
	return c
}

// ofNamespace returns the pods that were promised to placements of the same namespace.
func (c *candidate) ofNamespace(promised []fit.Part) []fit.Part {
	return slices.DeleteFunc(slices.Clone(promised), func(p fit.Part) bool {
		return p.Workload.Namespace != c.workload.Parts[0].Workload.Namespace
	})
}

// setAside returns how many of a number of replicas a new promise sets aside: the running replicas, and the ones that fit and are within
// the share of the namespace.
func (c *candidate) setAside(replicas, fitting int64) int64 {
	if c.share < c.whole {
		all, promised := c.workload.CountFit(c.summary, replicas, nil, 0), c.ofNamespace(c.unseenPromises(c.summary))
		own := all.ScaledUp - c.workload.CountFit(c.summary, replicas, promised, 0).ScaledUp
		fitting = min(fitting, max(all.ScaledUp*c.share/c.whole-own, 0)+c.running())
	}
	return min(replicas, max(fitting, 0))
}

// fitWithoutLimit returns the fit of the workload in addition to running replicas, without the limit of the cluster, which has a summary.
func (c *candidate) fitWithoutLimit(running int64) fit.Fit {
	promised := c.unseenPromises(c.summary)
	last, known := c.fits[c.summary]
	if !known || last.replicas != c.perCluster || last.running != running || !slices.Equal(last.promised, promised) {
		last = cachedFit{c.workload.CountFit(c.summary, c.perCluster, promised, running), c.perCluster, promised, running}
		c.fits[c.summary] = last
	}
	return last.Fit
}

// fitWithPromise returns the fit of the workload as if its promised pods were not running. Excluding are the running replicas that keep
// further ones from nodes.
func (c *candidate) fitWithPromise(excluding int64) fit.Fit {
	if c.summary == nil {
		return fit.Fit{Now: -1, WithSlack: -1, ScaledUp: -1, Wait: fit.Unknown, Cost: fit.Unknown}
	}
	out, n := c.fitWithoutLimit(excluding), c.running()
	if n > 0 && out.WithSlack+n >= c.perCluster {
		out.Wait, out.NewNodes, out.Cost = 0, 0, 0
	}
	out.Now, out.WithSlack, out.ScaledUp = min(out.Now+n, c.left), min(out.WithSlack+n, c.left), min(out.ScaledUp+n, c.left)
	if c.left < c.perCluster {
		out.Wait, out.Cost = fit.Unknown, fit.Unknown
	}
	return out
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

// percentage returns the share of a namespace in words.
func (c *candidate) percentage() string {
	return fmt.Sprintf("%.3g%%", 100*float64(c.share)/float64(c.whole))
}

// describeLeft returns in words what the limit of the cluster leaves.
func (c *candidate) describeLeft() string {
	if err := c.limit.err; err != nil {
		return fmt.Sprintf("annotation %s of ManagedCluster %s is not valid: %s", capacityv1alpha1.AnnotationLimit, c.name, err)
	}
	text := fmt.Sprintf("the limit of %s on the hub leaves %s", c.name, format.Of(c.left, "replica"))
	if c.shareLimits {
		text += fmt.Sprintf(": the placements of a namespace may have %s of it", c.percentage())
	}
	return text
}

// describeLimit returns in words what limits the replicas of the workload in the cluster.
func (c *candidate) describeLimit() string {
	if c.summary == nil {
		_, absent := c.capacity.currentSummary(c.now)
		return absent
	}
	running := c.runningThatExclude()
	if c.limit != nil && c.left <= c.fitWithoutLimit(running).ScaledUp {
		return c.describeLeft()
	}
	return c.workload.DescribeLimit(c.summary, c.unseenPromises(c.summary), running)
}

// describeFit returns in words how many of a number of replicas fit the cluster, and why no more.
func (c *candidate) describeFit(fits, replicas int64) string {
	if fits < 0 {
		return c.describeLimit()
	}
	return fmt.Sprintf("%s %s of %d: %s", format.Of(fits, "replica"), format.Form(fits, "fits", "fit"), replicas, c.describeLimit())
}
