package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/capacity"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// limit has the amounts that the workloads of placements may request in a cluster. No replicas are within it if err is set.
type limit struct {
	text    string
	amounts v1.ResourceList
	err     error
}

// setLimit sets the limit in annotation capacityv1alpha1.AnnotationLimit of a cluster, and reports whether it is new.
func (e *entry) setLimit(object *clusterv1.ManagedCluster) bool {
	old := e.limit
	text, given := object.Annotations[capacityv1alpha1.AnnotationLimit]
	switch {
	case !given:
		e.limit = nil
		return old != nil
	case old != nil && old.text == text:
		return false
	}
	e.limit = &limit{text: text}
	e.limit.amounts, e.limit.err = parseLimit(text)
	return true
}

// parseLimit returns the amounts in a text. The error names the resource.
func parseLimit(text string) (v1.ResourceList, error) {
	var raw map[v1.ResourceName]json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, err
	}
	if len(raw) == 0 {
		return nil, errors.New("must have an amount")
	}
	amounts := v1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		quantity, err := resources.ParseQuantity(strings.Trim(string(raw[name]), `" `))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case quantity.Sign() < 0:
			return nil, fmt.Errorf("%s: found %s: must be at least 0", name, quantity.String())
		case resources.NewResource(name).Index() == resources.Extended && !strings.ContainsAny(string(name), "/-"):
			return nil, fmt.Errorf("%s: must be cpu, memory, ephemeral-storage, pods, or the name of an extended resource", name)
		}
		amounts[name] = quantity
	}
	return amounts, nil
}

// fitting is the workload of a placement in one decision. Methods must be called with the lock held.
type fitting struct {
	*placementWorkload

	state *State
	now   int64
}

// fittingOf returns the workload of a placement, nil if it names none.
func (s *State) fittingOf(key types.NamespacedName, now int64) *fitting {
	w := s.workloads[key]
	if w == nil || w.workload == nil {
		return nil
	}
	return &fitting{w, s, now}
}

// noFit is the fit of a cluster without a valid summary.
var noFit = capacity.Fit{Now: -1, WithSlack: -1, ScaledUp: -1, Wait: capacity.Unknown, Cost: capacity.Unknown}

// left returns the number of replicas that the limit of a cluster leaves beside other placements, and the limit, nil for none.
func (f *fitting) left(c *Cluster) (int64, *limit) {
	l := c.entry.limit
	switch {
	case l == nil:
		return capacity.MaxReplicas, nil
	case l.err != nil:
		return 0, l
	}
	return f.workload.Within(l.amounts, f.others(c, nil)), l
}

// describe returns in words what a limit leaves.
func (l *limit) describe(cluster string, left int64) string {
	if l.err != nil {
		return fmt.Sprintf("annotation %s of ManagedCluster %s is not valid: %s", capacityv1alpha1.AnnotationLimit, cluster, l.err)
	}
	return fmt.Sprintf("the limit of %s on the hub leaves %s", cluster, format.Of(left, "replica"))
}

// cut limits a fit to the number of replicas that the limit of the cluster leaves.
func (f *fitting) cut(fit capacity.Fit, left int64) capacity.Fit {
	fit.Now, fit.WithSlack, fit.ScaledUp = min(fit.Now, left), min(fit.WithSlack, left), min(fit.ScaledUp, left)
	if left < f.workload.Replicas {
		fit.Wait, fit.Cost = capacity.Unknown, capacity.Unknown
	}
	return fit
}

// knownFit is a fit in a cluster beside the pods that were promised there and the running replicas.
type knownFit struct {
	capacity.Fit

	promised []capacity.Part
	running  int64
}

// uncut returns the fit of the workload and a summary of a cluster, in addition to running replicas, without the limit of the cluster.
func (f *fitting) uncut(c *Cluster, summary *capacity.Summary, running int64) capacity.Fit {
	promised := f.others(c, summary)
	fit, known := f.fits[summary]
	if !known || !slices.Equal(fit.promised, promised) || fit.running != running {
		fit = knownFit{f.workload.Fit(summary, promised, running), promised, running}
		f.fits[summary] = fit
	}
	return fit.Fit
}

// fit returns the fit of the workload in a cluster as if its promised pods were not running there. Excluding are the running replicas
// that keep further ones from nodes.
func (f *fitting) fit(c *Cluster, excluding int64) capacity.Fit {
	summary, _ := c.entry.summary(f.now)
	if summary == nil {
		return noFit
	}
	fit := f.uncut(c, summary, excluding)
	if n := f.running(c, summary); n > 0 {
		fit.Now, fit.WithSlack, fit.ScaledUp = fit.Now+n, fit.WithSlack+n, fit.ScaledUp+n
		if fit.WithSlack >= f.workload.Replicas {
			fit.Wait, fit.NewNodes, fit.Cost = 0, 0, 0
		}
	}
	left, _ := f.left(c)
	return f.cut(fit, left)
}

// addTo adds the fits to a request with its members.
func (f *fitting) addTo(r *Request) {
	perCluster, needed := f.replicas, f.replicas
	if f.spec.Divide {
		clusters := min(max(r.Number, 1), int64(max(len(r.Members), 1)))
		perCluster, needed = resources.DivUp(f.replicas, clusters), min(f.replicas, 1)
	}
	if f.workload.Replicas != perCluster {
		f.workload.Replicas = perCluster
		clear(f.fits)
	}
	r.Replicas, r.Fits, r.Unfit = perCluster, make([]capacity.Fit, len(r.Fleet)), make([]bool, len(r.Fleet))
	for _, i := range r.Members {
		cluster := r.Fleet[i]
		left, _ := f.left(cluster)
		r.Fits[i] = f.fit(cluster, f.excluding(cluster))
		r.Unfit[i] = left < needed || f.spec.RequireFit && r.Fits[i].ScaledUp < needed
	}
}

// limit returns in words what limits the replicas of the workload in a cluster.
func (f *fitting) limit(c *Cluster) string {
	summary, absent := c.entry.summary(f.now)
	if summary == nil {
		return absent
	}
	running := f.excluding(c)
	if left, l := f.left(c); l != nil && left <= f.uncut(c, summary, running).ScaledUp {
		return l.describe(c.Name, left)
	}
	return f.workload.Limit(summary, f.others(c, summary), running)
}

// reason returns in words how many replicas of the workload fit a cluster, and why no more.
func (f *fitting) reason(c *Cluster, fits, replicas int64) string {
	if fits < 0 {
		return f.limit(c)
	}
	return fmt.Sprintf("%s %s of %d: %s", format.Of(fits, "replica"), format.Form(fits, "fits", "fit"), replicas, f.limit(c))
}

// Fit returns the fit of a workload in a cluster beside the workloads of all placements and its own pods, and in words what limits it.
// Amounts are negative without a valid ClusterCapacity.
func (s *State) Fit(w *capacity.Workload, cluster string, now time.Time) (capacity.Fit, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &fitting{&placementWorkload{workload: w, fits: map[*capacity.Summary]knownFit{}}, s, now.Unix()}
	c := &Cluster{Name: cluster, entry: cmp.Or(s.entries[cluster], &entry{})}
	return f.fit(c, f.excluding(c)), f.limit(c)
}

// maxUnfit is the number of clusters whose reasons are in the condition of a placement.
const maxUnfit = 3

// complete adds the promises of a decision to its result, with warnings, and the reasons why the workload does not fit clusters: of all
// clusters if a preview has decided, else of the first ones.
func (f *fitting) complete(r *Result, request *Request) {
	r.Promises, r.unfit = f.promise(r.Fleet, r.Decision.Chosen, request.Fits), map[string]string{}
	for _, i := range request.Members {
		if r.Decision.Clusters[i].Outcome == Unfit {
			r.Unfit++
			if name := r.Fleet[i].Name; len(r.unfit) < maxUnfit || request.Index != f.state.index {
				r.unfit[name] = f.reason(r.Fleet[i], request.Fits[i].ScaledUp, f.workload.Replicas)
				r.unfitNames = append(r.unfitNames, name)
			}
		}
	}
	r.Warnings = slices.Clip(r.Warnings) // the slice is shared with the policy
	if unknown := f.workload.Unknown; len(unknown) > 0 {
		r.Warnings = append(r.Warnings, "the template of the workload: "+format.Abbreviate(unknown, maxUnfit, ", "))
	}
	f.warn(r)
	missing := f.replicas
	for _, promise := range r.Promises {
		missing -= promise.Replicas
	}
	if f.spec.Divide && missing > 0 && len(r.Promises) > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"%d of %d replicas are in no cluster: the limits of the selected clusters leave no more", missing, f.replicas))
	}
}

// unfitText returns the reasons why the workload does not fit clusters, "" if it fits all.
func (r *Result) unfitText() string {
	if r.Unfit == 0 {
		return ""
	}
	var reasons []string
	for _, name := range r.unfitNames[:min(len(r.unfitNames), maxUnfit)] {
		reasons = append(reasons, name+": "+r.unfit[name])
	}
	return fmt.Sprintf("; the workload does not fit %s (%s)", format.Of(r.Unfit, "cluster"), strings.Join(reasons, "; "))
}

// note is a warning about a promise in a cluster. The text is empty for kind fitted.
type note struct {
	kind noteKind
	text string
}

type noteKind uint8

const (
	// fitted means that the replicas of the promise fit before they run, noLongerFits that they did, neverSeen that they did not run
	// until the promise ended, exceedsLimit that they exceed the limit of the cluster, and unknownCapacity that the cluster has no valid
	// ClusterCapacity.
	fitted noteKind = 1 + iota
	noLongerFits
	neverSeen
	exceedsLimit
	unknownCapacity
)

// warn adds the notes about the promises of a decision as warnings. A note keeps its text while its kind lasts, so that it is one event.
func (f *fitting) warn(r *Result) {
	r.notes = make(map[string]note, len(r.Decision.Chosen))
	for _, i := range r.Decision.Chosen {
		cluster, name := r.Fleet[i], r.Fleet[i].Name
		fits := f.fit(cluster, 0).ScaledUp // at most: only replicas that surely fit no longer are a warning
		n, promise := f.notes[name], r.Promises[name]
		if kind := f.noteAbout(cluster, &promise, fits, n.kind); kind != n.kind {
			n = note{kind, ""}
			switch kind {
			case fitted:
			case exceedsLimit:
				left, l := f.left(cluster)
				wanted := format.Of(max(promise.Replicas, f.wanted()), "replica")
				n.text = fmt.Sprintf("%s: selected for %s: %s", name, wanted, l.describe(name, left))
			case unknownCapacity:
				n.text = name + ": selected, but " + f.limit(cluster)
			case noLongerFits:
				n.text = name + ": no longer fits: " + f.reason(cluster, fits, promise.Replicas)
			case neverSeen:
				n.text = fmt.Sprintf(
					"%s: no pod of %s was seen within %d minutes",
					name,
					format.Of(promise.Replicas, "replica"),
					promiseTime/60,
				)
			}
		}
		r.notes[name] = n
		if n.text != "" && len(r.Warnings) < maxWarnings {
			r.Warnings = append(r.Warnings, n.text)
		}
	}
}

// wanted returns the number of replicas that each selected cluster is to have, 0 if they are divided.
func (f *fitting) wanted() int64 {
	if f.spec.Divide {
		return 0
	}
	return f.replicas
}

// noteAbout returns the kind of the note about a promise in a cluster that a number of replicas fit, 0 for none.
func (f *fitting) noteAbout(c *Cluster, promise *Promise, fits int64, before noteKind) noteKind {
	summary, _ := c.entry.summary(f.now)
	workload := f.workload.Parts[0].Workload
	left, _ := f.left(c)
	switch {
	case left < max(promise.Replicas, f.wanted()):
		return exceedsLimit
	case promise.Replicas == 0:
		return 0
	case summary == nil:
		return unknownCapacity
	case workload.Name == "":
		return 0
	case promise.hasEnded(f.now):
		isRecent := f.now-promise.Since <= recentTime && summary.ObservedAt > promise.Since+promiseTime
		if isRecent && summary.Recent(workload) <= promise.Before {
			return neverSeen
		}
		return 0
	case fits >= promise.Replicas:
		return fitted
	case before == fitted || before == noLongerFits || f.spec.RequireFit && !f.spec.Divide:
		return noLongerFits
	}
	return 0
}
