package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// addPromises adds the promises of a decision to its result, with warnings, and the reasons why the workload does not fit clusters: of all
// clusters in a preview, else of the first ones.
func (d *workloadDecision) addPromises(r *Result, request *decide.Request, preview bool) {
	r.Promises, r.unfit = d.promisesTo(r.Fleet, r.Decision.Chosen, request.Fits), map[int32]string{}
	for _, i := range request.Members {
		if r.Decision.Clusters[i].Outcome == decide.Unfit && (preview || len(r.unfit) < maxUnfit) {
			r.unfit[i] = d.candidateFor(r.Fleet[i].Name).describeFit(request.Fits[i].ScaledUp, d.perCluster)
		}
	}
	if unknown := d.workload.Unknown; len(unknown) > 0 {
		r.Warnings = append(r.Warnings, "the template of the workload: "+format.Abbreviate(unknown, maxUnfit, ", "))
	}
	d.addNotes(r)
	if !d.spec.Divide || len(r.Promises) == 0 {
		return
	}
	r.missing = d.workload.Replicas
	for _, promise := range r.Promises {
		r.missing -= promise.Replicas
	}
	if r.missing > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"%d of %d replicas are in no cluster: the limits of the selected clusters leave no more", r.missing, d.workload.Replicas))
	}
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

// addNotes adds the notes about the promises of a decision as warnings. A note keeps its text while its kind and the limit last, so that it
// is one event.
func (d *workloadDecision) addNotes(r *Result) {
	r.notes = make(map[string]note, len(r.Decision.Chosen))
	for _, i := range r.Decision.Chosen {
		c := d.candidateFor(r.Fleet[i].Name)
		before := d.notes[c.name]
		n := c.noteAbout(r.Promises[c.name], before)
		if n.kind == before.kind && n.limit == before.limit {
			n = before
		}
		r.notes[c.name] = n
		if n.text != "" && len(r.Warnings) < maxWarnings {
			r.Warnings = append(r.Warnings, n.text)
		}
	}
}

// noteAbout returns the note about a promise in the cluster, the zero value for none.
func (c *candidate) noteAbout(promise podPromise, before note) note {
	wanted := promise.Replicas
	if !c.spec.Divide { // each selected cluster is to have all
		wanted = max(wanted, c.workload.Replicas)
	}
	fits := c.fitWithPromise(0).ScaledUp // at most: only replicas that surely fit no longer are a warning
	switch {
	case c.left < wanted:
		text := fmt.Sprintf("%s: selected for %s: %s", c.name, format.Of(wanted, "replica"), c.describeLeft())
		return note{exceedsLimit, text, c.limit.text}
	case promise.Replicas == 0:
	case c.summary == nil:
		return note{kind: unknownCapacity, text: c.name + ": selected, but " + c.describeLimit()}
	case c.isLimited(promise):
		return note{
			kind: exceedsShare,
			text: fmt.Sprintf("%s: capacity is set aside for %d of %s: the others do not fit, or exceed the %s of the free "+
				"capacity that the placements of a namespace may have", c.name, promise.Replicas-promise.Waiting,
				format.Of(promise.Replicas, "replica"), c.percentage()),
		}
	case c.workload.Parts[0].Workload.Name == "":
	case promise.hasEnded(c.now):
		if c.isUnseen(promise) {
			replicas := format.Of(promise.Replicas, "replica")
			text := fmt.Sprintf("%s: no pod of %s was seen within %d minutes", c.name, replicas, promiseTime/60)
			return note{kind: neverSeen, text: text}
		}
	case fits >= promise.Replicas:
		return note{kind: fitted}
	case before.kind == noLongerFits: // its text takes long
		return before
	case before.kind == fitted || c.spec.RequireFit && !c.spec.Divide:
		return note{kind: noLongerFits, text: c.name + ": no longer fits: " + c.describeFit(fits, promise.Replicas)}
	}
	return note{}
}

// isLimited reports whether replicas of a promise wait because they do not fit, or exceed the share of the namespace.
func (c *candidate) isLimited(promise podPromise) bool {
	return c.share < c.whole && promise.Waiting > 0 && !promise.hasEnded(c.now) && c.running() < promise.Replicas
}

// isUnseen reports whether a promise ended recently, and no pod of the workload was seen.
func (c *candidate) isUnseen(promise podPromise) bool {
	isRecent := c.now-promise.Since <= recentTime && c.summary.ObservedAt > promise.Since+promiseTime
	isSeen := func(part fit.Part) bool { return promise.podsShown(c.summary, part.Template) > 0 }
	return isRecent && !slices.ContainsFunc(c.workload.Parts, isSeen)
}
