package fleet

import (
	"fmt"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

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
	// exceedsShare means that some replicas wait, which may be because of the share of the namespace.
	exceedsShare
)

// addNotes adds the notes about the promises of a decision as warnings. A note keeps its text while its kind lasts, so that it is
// one event.
func (d *workloadDecision) addNotes(r *Result) {
	r.notes = make(map[string]note, len(r.Decision.Chosen))
	for _, i := range r.Decision.Chosen {
		c := d.candidateFor(r.Fleet[i].Name)
		before := d.notes[c.name]
		n := c.noteAbout(r.Promises[c.name], before)
		if n.kind == before.kind {
			n = before
		}
		r.notes[c.name] = n
		if n.text != "" && len(r.Warnings) < maxWarnings {
			r.Warnings = append(r.Warnings, n.text)
		}
	}
}

// isLimited reports whether replicas of a promise wait because they do not fit, or exceed the share of the namespace.
func (c *candidate) isLimited(promise podPromise) bool {
	return c.share < 100 && promise.Waiting > 0 && !promise.hasEnded(c.now) && c.running() < promise.Replicas
}

// isUnseen reports whether a promise ended recently, and no pod of the workload was seen.
func (c *candidate) isUnseen(promise podPromise) bool {
	isRecent := c.now-promise.Since <= recentTime && c.summary.ObservedAt > promise.Since+promiseTime
	isSeen := func(part fit.Part) bool { return promise.podsShown(c.summary, part.Template) > 0 }
	return isRecent && !slices.ContainsFunc(c.workload.Parts, isSeen)
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
		return note{exceedsLimit, text}
	case promise.Replicas == 0:
	case c.summary == nil:
		return note{unknownCapacity, c.name + ": selected, but " + c.describeLimit()}
	case c.isLimited(promise):
		return note{
			exceedsShare,
			fmt.Sprintf("%s: capacity is set aside for %d of %s: the others do not fit, or exceed the %d%% of the free "+
				"capacity that the placements of a namespace may have", c.name, promise.Replicas-promise.Waiting,
				format.Of(promise.Replicas, "replica"), c.share),
		}
	case c.workload.Parts[0].Workload.Name == "":
	case promise.hasEnded(c.now):
		if c.isUnseen(promise) {
			replicas := format.Of(promise.Replicas, "replica")
			return note{neverSeen, fmt.Sprintf("%s: no pod of %s was seen within %d minutes", c.name, replicas, promiseTime/60)}
		}
	case fits >= promise.Replicas:
		return note{kind: fitted}
	case before.kind == noLongerFits: // its text takes long
		return before
	case before.kind == fitted || c.spec.RequireFit && !c.spec.Divide:
		return note{noLongerFits, c.name + ": no longer fits: " + c.describeFit(fits, promise.Replicas)}
	}
	return note{}
}
